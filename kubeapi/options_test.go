package kubeapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNewNamesTheInvalidOption(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*Options)
		text  string
	}{
		"no base URL": {func(o *Options) { o.BaseURL = "" }, "BaseURL: is required"},
		"base URL without host": {
			func(o *Options) { o.BaseURL = "http:///api" }, "BaseURL: has no host",
		},
		"relative base URL": {
			func(o *Options) { o.BaseURL = "127.0.0.1/api" }, "BaseURL: must begin with http",
		},
		"other scheme": {
			func(o *Options) { o.BaseURL = "ftp://h" }, "BaseURL: must begin with http",
		},
		"unparsable base URL": {
			func(o *Options) { o.BaseURL = "http://u:secret@h:port" }, "BaseURL: is not a URL",
		},
		"slash in a password": {
			func(o *Options) { o.BaseURL = "http://user:secret/ss@h" }, "BaseURL: is not a URL",
		},
		"blank in a password": {
			func(o *Options) { o.BaseURL = "http://user:sec ret@h" }, "BaseURL: is not a URL",
		},
		"escape in a password": {
			func(o *Options) { o.BaseURL = "http://user:%secret@h" }, "BaseURL: is not a URL",
		},
		"bracket in a password": {
			func(o *Options) { o.BaseURL = "http://[secret:x@h" }, "BaseURL: is not a URL",
		},
		"control character": {
			func(o *Options) { o.BaseURL = "http://h\x1b" }, "BaseURL: is not a URL",
		},
		"address without scheme": {
			func(o *Options) { o.BaseURL = "127.0.0.1:8001" }, "BaseURL: must begin with http",
		},
		"user in base URL": {
			func(o *Options) { o.BaseURL = "http://u:secret@h" },
			"BaseURL: must not contain a user",
		},
		"query in base URL": {
			func(o *Options) { o.BaseURL = "http://h?secret" }, "BaseURL: must not have a query",
		},
		"empty query": {
			func(o *Options) { o.BaseURL = "http://h?" }, "BaseURL: must not have a query",
		},
		"fragment in base URL": {
			func(o *Options) { o.BaseURL = "http://h#secret" }, "BaseURL: must not have a fragment",
		},
		"group with a slash": {
			func(o *Options) { o.Resource.Group = "a/b" }, "Resource.Group: ",
		},
		"no version": {
			func(o *Options) { o.Resource.Version = "" }, "Resource.Version: is required",
		},
		"version that climbs": {
			func(o *Options) { o.Resource.Version = ".." }, "Resource.Version: ",
		},
		"no resource": {
			func(o *Options) { o.Resource.Resource = "" }, "Resource.Resource: is required",
		},
		"subresource": {
			func(o *Options) { o.Resource.Resource = "pods/status" }, "Resource.Resource: ",
		},
		"namespace with a slash": {func(o *Options) { o.Namespace = "a/b" }, "Namespace: "},
		"label selector": {
			func(o *Options) { o.LabelSelector = "a in" }, "LabelSelector: ",
		},
		"label selector, NUL": {
			func(o *Options) { o.LabelSelector = "a=b\x00" }, "LabelSelector: ",
		},
		"field selector": {
			func(o *Options) { o.FieldSelector = "nonsense" }, "FieldSelector: ",
		},
		"field selector, blank": {
			func(o *Options) { o.FieldSelector = "a=b,  =" }, "FieldSelector: ",
		},
		"client with a timeout": {
			func(o *Options) { o.HTTPClient = &http.Client{Timeout: time.Minute} },
			"HTTPClient: its Timeout is 1m0s",
		},
		"user agent": {func(o *Options) { o.UserAgent = "a\r\nX: y" }, "UserAgent: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{BaseURL: "http://h", Resource: pods}
			test.spoil(&o)
			source, err := New(o)
			require.Nil(t, source)
			require.ErrorIs(t, err, ErrInvalidOptions)
			require.ErrorContains(t, err, test.text)
			for _, part := range []string{"secret", "sec", "%se", "ss@h", "\x1b"} {
				require.NotContains(t, err.Error(), part)
			}
		})
	}
}

func TestNewRequiresOnlyBaseURLAndResource(t *testing.T) {
	source, err := New(Options{
		BaseURL:  "HTTPS://Host",
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
	})
	require.NoError(t, err)
	require.False(t, source.IsWatchListSemanticsUnSupported())
}

func TestNewDoesNotChangeTheCallersClient(t *testing.T) {
	client := &http.Client{}
	newSourceFor(t, Options{BaseURL: "http://h", Resource: pods, HTTPClient: client})
	require.Nil(t, client.CheckRedirect)
}
