package kubelease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
	"github.com/watchmirror/cache/sharding/kubelease"
	"github.com/watchmirror/cache/sharding/leasetest"
)

// Secrets of the requests. A decoder's error shows a number that does not fit, not a string.
const token, pin = "s3cr3t-t0ken", "98765432109876543210"

// serve returns a store whose requests the function answers, with the secrets in headers.
func serve(t *testing.T, answer http.HandlerFunc) *kubelease.Leases {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	store, err := kubelease.New(kubeapi.Options{BaseURL: server.URL, Namespace: "shop", UserAgent: "orders/1", Authorize: func(r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Tenant", token)
		r.Header.Set("X-Pin", pin)
		return nil
	}}, "orders")
	require.NoError(t, err)
	return store
}

// calls makes a request of each kind, and returns their errors.
func calls(t *testing.T, store sharding.Leases) map[string]error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, list := store.List(ctx)
	_, create := store.Put(ctx, sharding.Lease{Name: "range-0", Holder: "a"})
	_, update := store.Put(ctx, sharding.Lease{Name: "range-0", Holder: "a", Version: "uid/1"})
	remove := store.Delete(ctx, sharding.Lease{Name: "range-0", Version: "uid/1"})
	return map[string]error{"list": list, "create": create, "update": update, "delete": remove}
}

// requireSilent checks that no form of an error shows a secret, a query or a long text.
func requireSilent(t *testing.T, err error) {
	t.Helper()
	for _, shown := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, err)} {
		require.NotContains(t, shown, token)
		require.NotContains(t, shown, pin)
		require.Less(t, len(shown), 5000)
		require.NotContains(t, shown, "shard-group")
	}
}

func TestStoresKeepTheContract(t *testing.T) {
	server := httptest.NewServer(&kubelease.Handler{})
	t.Cleanup(server.Close)
	remote, err := kubelease.New(kubeapi.Options{BaseURL: server.URL, Namespace: "shop"}, "orders")
	require.NoError(t, err)
	other, err := kubelease.New(kubeapi.Options{BaseURL: server.URL, Namespace: "shop"}, "other")
	require.NoError(t, err)
	_, err = other.Put(t.Context(), sharding.Lease{Name: "range-0", Holder: "x"})
	require.NoError(t, err)
	for name, store := range map[string]sharding.Leases{"memory": &sharding.MemoryLeases{}, "kubernetes": remote} {
		t.Run(name, func(t *testing.T) { leasetest.Test(t, store) })
	}
}

func TestCoordinatorsShareRangesByLeaseObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := cachetest.NewListener()
		server := &http.Server{Handler: &kubelease.Handler{}}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) })
		transport := &http.Transport{DialContext: listener.DialContext}
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Close()
			serving.Wait()
		}()
		store, err := kubelease.New(kubeapi.Options{BaseURL: "http://api.test", Namespace: "shop", HTTPClient: &http.Client{Transport: transport}}, "orders")
		require.NoError(t, err)
		leasetest.TestCoordinators(t, store)
	})
}

// Like an API server: leaseStrategy.AllowCreateOnUpdate.
func TestTheHandlerCreatesAMissingLeaseOnUpdateWithoutAUID(t *testing.T) {
	for uid, code := range map[string]int{"": http.StatusOK, "uid-1": http.StatusConflict} {
		body := fmt.Sprintf(`{"metadata":{"name":"a","uid":%q,"resourceVersion":"7"}}`, uid)
		answer := httptest.NewRecorder()
		new(kubelease.Handler).ServeHTTP(answer, httptest.NewRequest(http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/shop/leases/a", strings.NewReader(body)))
		require.Equal(t, code, answer.Code, answer.Body)
	}
}

func TestAnErrorResponseIsNoConflictAndShowsNoSecret(t *testing.T) {
	echo := func(r *http.Request) string {
		return "no role allows it to " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Tenant") + " for " + r.URL.RawQuery
	}
	for name, answer := range map[string]http.HandlerFunc{
		"Status": func(w http.ResponseWriter, r *http.Request) {
			message, _ := json.Marshal(echo(r))
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","reason":"Forbidden","message":%s,"details":{"name":%s}}`, message, message)
		},
		"long text": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, echo(r)+strings.Repeat("x", 20<<10), http.StatusForbidden)
		},
		"text": func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(r), http.StatusForbidden) },
	} {
		t.Run(name, func(t *testing.T) {
			for verb, err := range calls(t, serve(t, answer)) {
				require.ErrorContains(t, err, verb+` "http://127.0.0.1:`)
				require.ErrorContains(t, err, "no role allows it to")
				require.NotErrorIs(t, err, sharding.ErrLeaseConflict)
				require.True(t, apierrors.IsForbidden(err))
				requireSilent(t, err)
				refused, _ := errors.AsType[*apierrors.StatusError](err)
				requireSilent(t, errors.New(refused.ErrStatus.String()))
			}
		})
	}
}

func TestAConflictAndAMissingLeaseAreConflicts(t *testing.T) {
	for _, code := range []int{http.StatusConflict, http.StatusNotFound} {
		for verb, err := range calls(t, serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.Header.Get("X-Tenant"), code) })) {
			conflict := code == http.StatusConflict || verb == "update" || verb == "delete"
			require.Equal(t, conflict, errors.Is(err, sharding.ErrLeaseConflict), "%s: %v", verb, err)
			requireSilent(t, err)
		}
	}
	store := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a version of another store was sent") })
	for _, version := range []string{"1", "/1", "uid/"} {
		_, err := store.Put(t.Context(), sharding.Lease{Name: "a", Version: version})
		require.ErrorIs(t, err, sharding.ErrLeaseConflict)
		require.ErrorIs(t, store.Delete(t.Context(), sharding.Lease{Name: "a", Version: version}), sharding.ErrLeaseConflict)
	}
}

func TestRedirectsStayWithinTheOrigin(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s reached another port with %v", r.Method, r.Header)
	}))
	defer thief.Close()
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		for verb, err := range calls(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL+"/?token="+token, code)
		})) {
			require.ErrorIs(t, err, kubeapi.ErrRedirect, verb)
			requireSilent(t, err)
		}
	}
	for verb, err := range calls(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"?token="+token, http.StatusTemporaryRedirect)
	})) {
		require.ErrorContains(t, err, "stopped after 10 redirects", verb)
		requireSilent(t, err)
	}
	var handler kubelease.Handler
	leasetest.Test(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if path, moved := strings.CutPrefix(r.URL.Path, "/moved"); moved {
			require.Equal(t, "Bearer "+token, r.Header.Get("Authorization"))
			r.URL.Path = path
			handler.ServeHTTP(w, r)
			return
		}
		http.Redirect(w, r, "/moved"+r.URL.String(), http.StatusPermanentRedirect)
	}))
}

// net/http repeats a PUT as a GET after a 302. Its answer is the stored lease, which would look like that of the change.
func TestAChangeIsNotRepeatedAsAGet(t *testing.T) {
	stored := `{"kind":"Lease","metadata":{"name":"orders-range-0","uid":"uid","resourceVersion":"1"}}`
	for verb, err := range calls(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, stored)
	})) {
		if verb != "list" {
			require.ErrorIs(t, err, kubeapi.ErrRedirect, verb)
		}
	}
}

func TestAResponseThatIsNotALeaseIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		is   error
	}{
		"page":             {"<html>", kubeapi.ErrMalformed},
		"empty":            {"", kubeapi.ErrMalformed},
		"object":           {"{}", nil},
		"number":           {`{"kind":"LeaseList","metadata":{"name":5},"items":5}`, kubeapi.ErrMalformed},
		"part of the list": {`{"kind":"LeaseList","metadata":{"continue":"` + token + `"},"items":[]}`, nil},
		"nameless":         {`{"kind":"LeaseList","items":[{"metadata":{"uid":"u","resourceVersion":"1"}}]}`, kubeapi.ErrMalformed},
		"no UID":           {`{"kind":"LeaseList","items":[{"metadata":{"name":"orders-a","resourceVersion":"1"}}]}`, kubeapi.ErrMalformed},
		"a secret":         {`{"kind":"LeaseList","spec":{"leaseDurationSeconds":` + pin + `},"items":[{"spec":{"leaseDurationSeconds":` + pin + `}}]}`, kubeapi.ErrMalformed},
		"too many bytes":   {strings.Repeat(" ", 1<<20) + "{}", kubeapi.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			for verb, err := range calls(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.body) })) {
				if verb == "delete" && name != "too many bytes" {
					require.NoError(t, err)
					continue
				}
				require.Error(t, err, verb)
				require.NotErrorIs(t, err, sharding.ErrLeaseConflict)
				if test.is != nil {
					require.ErrorIs(t, err, test.is)
				}
				requireSilent(t, err)
			}
		})
	}
}

func TestALongResponseTakesLittleMemory(t *testing.T) {
	listOf := func(n int, item string) string {
		return `{"kind":"LeaseList","items":[` + strings.Repeat(item+",", n-1) + item + `]}`
	}
	const item = `{"metadata":{"name":"orders-a","uid":"u","resourceVersion":"1"}}`
	all, err := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, listOf(4096, item)) }).List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 4096)
	for name, body := range map[string]string{
		"one too many":   listOf(4097, item),
		"one MiB":        listOf(1<<20/3-20, `{}`),
		"sixteen MiB":    listOf(16<<20/3, `{}`),
		"elements":       listOf(1, `{"metadata":{"ownerReferences":[`+strings.Repeat("{},", 340_000)+`{}]}}`),
		"managed fields": `{"kind":"LeaseList","items":[` + strings.Repeat(`{"metadata":{"managedFields":[`+strings.Repeat("{},", 80)+`{}]}},`, 3700) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			store := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := store.List(t.Context())
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d KiB for a body of %d KiB: %v", allocated>>10, len(body)>>10, err)
			require.Less(t, allocated, uint64(32<<20))
		})
	}
}

func TestRequestsNameTheProgram(t *testing.T) {
	var agents sync.Map
	store := serve(t, func(_ http.ResponseWriter, r *http.Request) { agents.Store(r.UserAgent(), true) })
	calls(t, store)
	agents.Range(func(agent, _ any) bool { require.Equal(t, "orders/1", agent); return true })
}

func TestCallsEndWithTheirContextWhateverTheTransportDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, writer := io.Pipe()
		defer writer.Close()
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		})
		store, err := kubelease.New(kubeapi.Options{BaseURL: "http://api.test", Namespace: "shop", HTTPClient: &http.Client{Transport: transport}}, "orders")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = store.List(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNewRefusesInvalidOptionsWithoutShowingAPassword(t *testing.T) {
	valid := kubeapi.Options{BaseURL: "http://api.test", Namespace: "shop"}
	for field, change := range map[string]func(*kubeapi.Options) (group string){
		"BaseURL: must not contain a user": func(o *kubeapi.Options) string { o.BaseURL = "http://jane:" + token + "@api.test"; return "orders" },
		"BaseURL: is not a URL":            func(o *kubeapi.Options) string { o.BaseURL = "http://jane:" + token + "/x@api.test"; return "orders" },
		"BaseURL: must not have a query":   func(o *kubeapi.Options) string { o.BaseURL = "http://api.test?token=" + token; return "orders" },
		"BaseURL: must begin with http://": func(o *kubeapi.Options) string { o.BaseURL = "nowhere"; return "orders" },
		"BaseURL: is required":             func(o *kubeapi.Options) string { o.BaseURL = ""; return "orders" },
		"Namespace: is required":           func(o *kubeapi.Options) string { o.Namespace = ""; return "orders" },
		`Namespace: "a/b"`:                 func(o *kubeapi.Options) string { o.Namespace = "a/b"; return "orders" },
		"UserAgent: ":                      func(o *kubeapi.Options) string { o.UserAgent = "a\r\nb"; return "orders" },
		"group: is required":               func(*kubeapi.Options) string { return "" },
		`group: "a=b"`:                     func(*kubeapi.Options) string { return "a=b" },
	} {
		options := valid
		group := change(&options)
		_, err := kubelease.New(options, group)
		require.ErrorIs(t, err, kubeapi.ErrInvalidOptions)
		require.ErrorContains(t, err, field)
		require.NotContains(t, err.Error(), token)
	}
}
