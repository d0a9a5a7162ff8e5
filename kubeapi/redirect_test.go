package kubeapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Location may hold credentials, and what net/http says of one that it cannot read
// has all of it.
func TestARedirectThatCannotBeReadIsToldWithoutItsAddress(t *testing.T) {
	for name, location := range map[string]string{
		"port":              "http://user:secret/x@h/",
		"escape":            "http://h/%secret",
		"control character": "http://h/secret\x1b[2J",
		"relative":          ":secret",
	} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(name, func(t *testing.T) {
				closed := &closing{Reader: strings.NewReader("")}
				source := newSource(t, server(func(*http.Request) (*http.Response, error) {
					return response(code, closed, "Location", location), nil
				}))
				_, err := source.List(metav1.ListOptions{})
				require.ErrorIs(t, err, ErrRedirect)
				require.EqualError(t, err, `list "http://api.test/api/v1/pods": redirected to another origin: to an address that is no URL`)
				require.True(t, closed.closed)
				_, err = source.Watch(metav1.ListOptions{})
				require.ErrorIs(t, err, ErrRedirect)
				require.NotContains(t, err.Error(), "secret")
			})
		}
	}
}

func TestAHostInARedirectIsToldWithoutControlCharacters(t *testing.T) {
	source := newSource(t, answers(http.StatusFound, "", "Location", "http://h%C2%9Bx/"))
	_, err := source.List(metav1.ListOptions{})
	require.ErrorIs(t, err, ErrRedirect)
	require.NotContains(t, err.Error(), "\u009b")
}

// Without a Location a redirect is an answer like others, and so is a 300 with one.
func TestWhatIsNotRedirectedIsARefusal(t *testing.T) {
	for _, answer := range []server{answers(302, ""), answers(300, "", "Location", "http://user:secret/x@h")} {
		_, err := newSource(t, answer).List(metav1.ListOptions{})
		require.IsType(t, &apierrors.StatusError{}, err)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestARedirectToAnotherOriginIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer thief.Close()
	front := httptest.NewServer(http.RedirectHandler("http://user:pass@"+thief.Listener.Addr().String()+"/login?secret=1", http.StatusFound))
	defer front.Close()

	source := newSourceFor(t, Options{
		BaseURL: front.URL, Resource: pods, HTTPClient: front.Client(),
		Authorize: func(r *http.Request) error { r.Header.Set("X-Token", "secret"); return nil },
	})
	for _, call := range []func() error{
		func() error { _, err := source.List(metav1.ListOptions{}); return err },
		func() error { _, err := source.Watch(metav1.ListOptions{}); return err },
	} {
		err := call()
		require.ErrorIs(t, err, ErrRedirect)
		require.ErrorContains(t, err, thief.URL)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "pass")
		require.False(t, reached.Load())
	}
}

func TestARedirectWithinTheOriginIsFollowedWithCredentials(t *testing.T) {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/moved") {
			http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		if r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, podList())
	}))
	defer front.Close()
	options := Options{
		BaseURL: front.URL, Resource: pods, HTTPClient: front.Client(),
		Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer t"); return nil },
	}
	_, err := newSourceFor(t, options).List(metav1.ListOptions{})
	require.NoError(t, err)

	refused := errors.New("not with me")
	options.HTTPClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return refused }}
	_, err = newSourceFor(t, options).List(metav1.ListOptions{})
	require.ErrorIs(t, err, refused, "the caller's own rule still counts")
}

func TestRedirectsInACircleEnd(t *testing.T) {
	var requests atomic.Int32
	circle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	defer circle.Close()
	_, err := newSourceFor(t, Options{BaseURL: circle.URL, Resource: pods}).List(metav1.ListOptions{})
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.EqualValues(t, maxRedirects, requests.Load())
}

func TestOriginsAreSchemeHostAndPort(t *testing.T) {
	for _, same := range [][2]string{
		{"http://h/x", "http://H:80/y?z"},
		{"https://h", "https://h:443"},
		{"https://[::1]:443", "https://[::1]"},
	} {
		require.Equal(t, parsed(t, same[0]), parsed(t, same[1]))
	}
	for _, other := range [][2]string{
		{"http://h", "https://h"},
		{"http://h:443", "https://h:443"},
		{"http://h", "http://h:8080"},
		{"http://h", "http://h.evil"},
	} {
		require.NotEqual(t, parsed(t, other[0]), parsed(t, other[1]))
	}
}

func parsed(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return origin(u)
}
