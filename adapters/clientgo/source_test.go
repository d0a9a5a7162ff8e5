package clientgo_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/kubeapi"
)

func TestFieldsThatTheConfigDecidesMustBeEmpty(t *testing.T) {
	for field, set := range map[string]func(*kubeapi.Options){
		"BaseURL":    func(o *kubeapi.Options) { o.BaseURL = "https://api.test" },
		"HTTPClient": func(o *kubeapi.Options) { o.HTTPClient = &http.Client{} },
		"Authorize":  func(o *kubeapi.Options) { o.Authorize = func(*http.Request) error { return nil } },
	} {
		_, err := clientgo.NewSource(&rest.Config{}, optionsOf(set))
		require.ErrorIs(t, err, kubeapi.ErrInvalidOptions)
		assert.ErrorContains(t, err, field+": ")
		_, err = clientgo.NewSourceForClient(clientOf(t, rest.Config{}), optionsOf(set))
		require.ErrorIs(t, err, kubeapi.ErrInvalidOptions)
		assert.ErrorContains(t, err, field+": ")
	}
}

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	_, err := clientgo.NewSource(&rest.Config{}, kubeapi.Options{})
	require.ErrorIs(t, err, kubeapi.ErrInvalidOptions)
	assert.ErrorContains(t, err, "Resource.Version")
}

func TestAConfigOfWhichThereIsNoTransportIsAnError(t *testing.T) {
	_, err := clientgo.NewSource(nil, optionsOf())
	require.ErrorIs(t, err, clientgo.ErrInvalidConfig)

	_, err = clientgo.NewSource(&rest.Config{BearerToken: "s3cret", Username: "me"}, optionsOf())
	require.ErrorIs(t, err, clientgo.ErrInvalidConfig)
	assert.ErrorContains(t, err, "bearer token")
	assert.NotContains(t, err.Error(), "s3cret")
}

func TestAPathPrefixStandsBeforeThePathsOfTheAPI(t *testing.T) {
	const prefix = "/k8s/clusters/c1"
	for _, host := range []string{prefix, prefix + "/"} {
		api := &api{}
		config := rest.Config{Host: serve(t, api).URL + host}
		inShop := func(o *kubeapi.Options) { o.Namespace = "shop" }
		for way, source := range map[string]*kubeapi.ListerWatcher{
			"config": sourceOf(t, &config, inShop),
			"client": sourceOfClient(t, clientOf(t, config), inShop),
		} {
			list(t, source)
			assert.Equal(t, prefix+"/api/v1/namespaces/shop/pods", api.last(t).URL.Path, way)
		}
	}
}

// client-go decodes the prefix, as a server would that compares decoded paths. A config and the
// client made from it must use the same address.
func TestEscapesInAPathPrefixAreSentAsClientGoSendsThem(t *testing.T) {
	for prefix, want := range map[string]string{
		"/a%2Fb":     "/a/b/api/v1/pods",
		"/a%2Fb/":    "/a/b/api/v1/pods",
		"/a%20b%3Fc": "/a%20b%3Fc/api/v1/pods",
		"/a%25b":     "/a%25b/api/v1/pods",
	} {
		api := &api{}
		config := rest.Config{Host: serve(t, api).URL + prefix}
		client := clientOf(t, config)
		require.NoError(t, client.Get().Resource("pods").Do(t.Context()).Error())
		require.Equal(t, want, api.last(t).RequestURI, "by client-go itself, of %s", prefix)
		list(t, sourceOf(t, &config))
		assert.Equal(t, want, api.last(t).RequestURI, "config, of %s", prefix)
		list(t, sourceOfClient(t, client))
		assert.Equal(t, want, api.last(t).RequestURI, "client, of %s", prefix)
	}
}

func TestAHostWithoutASchemeIsReached(t *testing.T) {
	api := &api{}
	list(t, sourceOf(t, &rest.Config{Host: strings.TrimPrefix(serve(t, api).URL, "http://")}))
	assert.Equal(t, 1, api.count())
}

func TestTheUserAgentIsTheOptionsOrTheConfigsOrOurs(t *testing.T) {
	api := &api{}
	config := rest.Config{Host: serve(t, api).URL}
	agent := func(source *kubeapi.ListerWatcher) string {
		list(t, source)
		return api.last(t).UserAgent()
	}
	named := func(o *kubeapi.Options) { o.UserAgent = "mirror/1" }

	assert.Contains(t, agent(sourceOf(t, &config)), "watchmirror-cache/")
	assert.Equal(
		t, "Go-http-client/1.1", agent(sourceOfClient(t, clientOf(t, config))),
		"as from the client itself")
	config.UserAgent = "operator/2"
	assert.Equal(t, "operator/2", agent(sourceOf(t, &config)))
	assert.Equal(t, "operator/2", agent(sourceOfClient(t, clientOf(t, config))))
	assert.Equal(t, "mirror/1", agent(sourceOf(t, &config, named)))
	assert.Equal(t, "mirror/1", agent(sourceOfClient(t, clientOf(t, config), named)))
}

func TestEncodingsOfTheConfigAreAskedForIfTheOptionsHaveNone(t *testing.T) {
	api := &api{}
	config := rest.Config{Host: serve(t, api).URL}
	typed := func(o *kubeapi.Options) { o.ObjectType = pod("", "") }
	plain := func(o *kubeapi.Options) { o.KeepManagedFields = true } // otherwise Accept has more
	accepted := func(options ...func(*kubeapi.Options)) string {
		list(t, sourceOf(t, &config, append(options, plain)...))
		return api.last(t).Header.Get("Accept")
	}
	assert.Equal(t, "application/vnd.kubernetes.protobuf, application/json", accepted(typed))
	config.ContentType = "application/json"
	assert.Equal(t, "application/json", accepted(typed))
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	assert.Equal(t, "application/vnd.kubernetes.protobuf, application/json", accepted(typed))
	assert.Equal(t, "application/json", accepted())
	assert.Equal(
		t,
		"application/json",
		accepted(
			typed, func(o *kubeapi.Options) { o.Encodings = []kubeapi.Encoding{kubeapi.JSON} }),
	)
}

func TestEitherOfConfigAndOptionsDisablesCompression(t *testing.T) {
	api := &api{}
	host := serve(t, api).URL
	disabled := func(o *kubeapi.Options) { o.DisableCompression = true }
	for source, want := range map[*kubeapi.ListerWatcher]string{
		sourceOf(t, &rest.Config{Host: host}):                                     "gzip",
		sourceOf(t, &rest.Config{Host: host}, disabled):                           "identity",
		sourceOf(t, &rest.Config{Host: host, DisableCompression: true}):           "identity",
		sourceOf(t, &rest.Config{Host: host, DisableCompression: true}, disabled): "identity",
	} {
		list(t, source)
		assert.Equal(t, want, api.last(t).Header.Get("Accept-Encoding"))
	}
}

// warningRecorder is a WarningHandler, with and without a context.
type warningRecorder struct{ got []string }

func (w *warningRecorder) HandleWarningHeader(code int, agent, text string) {
	w.got = append(w.got, agent+" "+http.StatusText(code)+text)
}

type warningRecorderWithContext struct {
	warningRecorder
	contexts []context.Context
}

func (w *warningRecorderWithContext) HandleWarningHeaderWithContext(
	ctx context.Context, code int, agent, text string,
) {
	w.contexts = append(w.contexts, ctx)
	if code == 299 {
		w.got = append(w.got, agent+" 299 "+text)
	}
}

func TestWarningsReachTheConfigsHandlerOnce(t *testing.T) {
	api := &api{header: http.Header{"Warning": {`299 - "v1 is old"`}}}
	host := serve(t, api).URL

	plain := &warningRecorder{}
	source := sourceOf(t, &rest.Config{Host: host, WarningHandler: plain})
	list(t, source)
	list(t, source)
	assert.Equal(t, []string{"- v1 is old"}, plain.got)

	with := &warningRecorderWithContext{}
	list(
		t,
		sourceOf(
			t, &rest.Config{Host: host, WarningHandler: plain, WarningHandlerWithContext: with}),
	)
	assert.Equal(t, []string{"- 299 v1 is old"}, with.got)
	assert.Equal(t, []context.Context{t.Context()}, with.contexts)
	assert.Len(t, plain.got, 1, "the one with a context comes first, as in client-go")

	var own []string
	list(t, sourceOf(t, &rest.Config{Host: host, WarningHandler: plain}, func(o *kubeapi.Options) {
		o.OnWarning = func(_ context.Context, text string) { own = append(own, text) }
	}))
	assert.Equal(t, []string{"v1 is old"}, own)
	assert.Len(t, plain.got, 1)
}

func TestRefusalsAreErrorsOfAPIMachinery(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(
			w,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden"}`,
		)
	}))
	config := rest.Config{Host: server.URL}
	for way, source := range map[string]*kubeapi.ListerWatcher{
		"config": sourceOf(t, &config),
		"client": sourceOfClient(t, clientOf(t, config)),
	} {
		_, err := source.List(metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", way, err)
		_, err = source.Watch(metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", way, err)
	}
}

// fullConfig has a value in every field that could be shared by mistake.
func fullConfig(transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host: "http://api.test", BearerToken: "s3cret", Transport: transport,
		UserAgent: "operator/2",
		Impersonate: rest.ImpersonationConfig{
			UserName: "jane",
			Groups:   []string{"dev"},
			Extra:    map[string][]string{"scopes": {"view"}},
		},
		// With a token the plugin is not run, but its configuration is read.
		ExecProvider: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "/nowhere",
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			Config:          &metav1.Status{Message: "extension"},
		},
		Timeout: time.Hour, QPS: 1000,
	}
}

func TestTheConfigIsNeitherChangedNorKept(t *testing.T) {
	api := &api{}
	config := fullConfig(api)
	extension := config.ExecProvider.Config
	source := sourceOf(t, config)
	assert.Equal(t, fullConfig(api), config)
	assert.Same(t, extension, config.ExecProvider.Config)

	config.Host = "http://elsewhere.test"
	config.BearerToken = "other"
	config.UserAgent = "other"
	config.Impersonate.Groups[0] = "admin"
	config.Impersonate.Extra["scopes"][0] = "admin"
	config.Impersonate.Extra["more"] = []string{"admin"}
	list(t, source)
	request := api.last(t)
	assert.Equal(t, "api.test", request.URL.Host)
	assert.Equal(t, "Bearer s3cret", request.Header.Get("Authorization"))
	assert.Equal(t, "operator/2", request.UserAgent())
	assert.Equal(t, []string{"dev"}, request.Header["Impersonate-Group"])
	assert.Equal(t, []string{"view"}, request.Header["Impersonate-Extra-Scopes"])
	assert.NotContains(t, request.Header, "Impersonate-Extra-More")
}

// For the race detector: making two sources from one config writes nothing to it.
func TestSourcesOfOneConfigMayBeMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := fullConfig(&api{})
		for range 4 {
			go func() {
				_, err := clientgo.NewSource(config, optionsOf())
				assert.NoError(t, err)
			}()
		}
		synctest.Wait()
	})
}
