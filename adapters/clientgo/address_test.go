package clientgo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

func TestTheAddressFollowsTheRulesOfClientGo(t *testing.T) {
	tls := rest.TLSClientConfig{CAFile: "ca.crt"}
	for _, test := range []struct {
		config rest.Config
		want   string
	}{
		{rest.Config{}, "http://localhost"},
		{rest.Config{Host: "10.0.0.1"}, "http://10.0.0.1"},
		{rest.Config{Host: "10.0.0.1:6443"}, "http://10.0.0.1:6443"},
		{rest.Config{Host: "api.test:6443", TLSClientConfig: tls}, "https://api.test:6443"},
		{
			rest.Config{Host: "api.test", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
			"https://api.test",
		},
		{
			rest.Config{
				Host:            "api.test",
				TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x")},
			},
			"https://api.test",
		},
		{rest.Config{Host: "[::1]:6443", TLSClientConfig: tls}, "https://[::1]:6443"},
		{rest.Config{Host: "http://api.test", TLSClientConfig: tls}, "http://api.test"},
		{rest.Config{Host: "HTTPS://api.test"}, "https://api.test"},
		{
			rest.Config{Host: "https://rancher.test/k8s/clusters/c1"},
			"https://rancher.test/k8s/clusters/c1",
		},
		{rest.Config{Host: "https://rancher.test/a%2Fb/"}, "https://rancher.test/a/b/"},
		{rest.Config{Host: "https://rancher.test/a%20b%3Fc"}, "https://rancher.test/a%20b%3Fc"},
		{rest.Config{Host: "https://api.test/p?q=1#f"}, "https://api.test/p"},
		{rest.Config{Host: "https://api.test", APIPath: "/elsewhere"}, "https://api.test"},
	} {
		have, err := configAddress(&test.config)
		require.NoError(t, err, test.config.Host)
		assert.Equal(t, test.want, have)
	}
}

// A password in a Host must not appear in an error.
func TestAHostThatCannotBeUsedIsNamedAndNotQuoted(t *testing.T) {
	for host, want := range map[string]string{
		"https://me:hunter2@api.test":      "user or password",
		"me:hunter2@api.test":              "user or password",
		"api.test/hunter2":                 "a path needs the scheme",
		"https://api.test:hunter2":         "neither a URL",
		"hunter2://api.test":               "neither http nor https",
		"https://:6443":                    "has no host",
		"https://api.test/%zzhunter2":      "neither a URL",
		"https://me:hunter2@api.test:port": "neither a URL",
	} {
		_, err := NewSource(
			&rest.Config{Host: host},
			kubeapi.Options{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}})
		require.ErrorIs(t, err, ErrInvalidConfig, host)
		assert.ErrorContains(t, err, "Host: ")
		assert.ErrorContains(t, err, want, host)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}
