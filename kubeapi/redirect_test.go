package kubeapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Location may have credentials, and net/http's error for one that it cannot parse quotes all of
// it.
func TestARedirectThatCannotBeReadIsReportedWithoutItsAddress(t *testing.T) {
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
					return newResponse(code, closed, "Location", location), nil
				}))
				_, err := source.List(metav1.ListOptions{})
				require.ErrorIs(t, err, ErrRedirect)
				require.EqualError(
					t, err,
					`list "http://api.test/api/v1/pods": redirected to another origin: to an invalid URL`,
				)
				require.True(t, closed.closed)
				_, err = source.Watch(metav1.ListOptions{})
				require.ErrorIs(t, err, ErrRedirect)
				require.NotContains(t, err.Error(), "secret")
			})
		}
	}
}

func TestAHostInARedirectIsReportedWithoutControlCharacters(t *testing.T) {
	source := newSource(t, respondWith(http.StatusFound, "", "Location", "http://h%C2%9Bx/"))
	_, err := source.List(metav1.ListOptions{})
	require.ErrorIs(t, err, ErrRedirect)
	require.NotContains(t, err.Error(), "\u009b")
}

// Scheme and host are in lower case in the error, and so is the token in them.
func TestATokenInTheHostOfARedirectIsNotReported(t *testing.T) {
	const token = "aB12-Secret-Token"
	for _, location := range []string{
		"http://" + token + "/", "http://x." + token + ".test:80/", "//" + token, token + "://h/",
	} {
		source := newSourceOf(t, respondWith(http.StatusFound, "", "Location", location), Options{
			Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+token); return nil },
		})
		_, err := source.List(metav1.ListOptions{})
		require.ErrorIs(t, err, ErrRedirect)
		require.NotContains(t, strings.ToLower(err.Error()), "secret")
	}
}

// A redirect without a Location is an ordinary response, and so is a 300 with one.
func TestAnAnswerWithoutARedirectIsARefusal(t *testing.T) {
	for _, answer := range []server{
		respondWith(302, ""), respondWith(300, "", "Location", "http://user:secret/x@h"),
	} {
		_, err := newSource(t, answer).List(metav1.ListOptions{})
		require.ErrorAs(t, err, new(*apierrors.StatusError))
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestARedirectToAnotherOriginIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	thief := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer thief.Close()
	front := httptest.NewServer(http.RedirectHandler(
		"http://user:pass@"+thief.Listener.Addr().String()+"/login?secret=1", http.StatusFound))
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
	options.HTTPClient = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return refused },
	}
	_, err = newSourceFor(t, options).List(metav1.ListOptions{})
	require.ErrorIs(t, err, refused, "the caller's own rule still counts")
}

func TestRedirectLoopsEnd(t *testing.T) {
	var requests atomic.Int32
	circle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	defer circle.Close()
	_, err := newSourceFor(
		t, Options{BaseURL: circle.URL, Resource: pods}).List(
		metav1.ListOptions{})
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.EqualValues(t, maxRedirects, requests.Load())
}

// maxRedirects is net/http's own limit.
const maxRedirects = 10

// to redirects every request to a location, except redirected requests.
func to(location string, sent *[]*http.Request) server {
	return func(r *http.Request) (*http.Response, error) {
		*sent = append(*sent, r)
		if len(*sent) > 1 {
			return newResponse(http.StatusOK, textBody(podList())), nil
		}
		return newResponse(http.StatusTemporaryRedirect, textBody(""), "Location", location), nil
	}
}

func TestRedirectsToAnotherOriginAreRefusedInEverySpelling(t *testing.T) {
	for _, location := range []string{
		"http://api.test/hush",            // the same host, in plain text
		"http://api.test:443/hush",        // with the port
		"https://api.test:8443/hush",      // another server of that host
		"https://api.test.evil.test/hush", // the same prefix
		"https://api.test./hush",          // the same for a resolver, but not for a certificate
		"https://api.test@evil.test/hush",
		"https://evil.test:443/?hush",
		"//evil.test/hush",
		"https:evil.test/hush",
		"https:///hush",
		"ftp://api.test/hush",
		"file:///hush",
		"javascript:hush",
		"https://hush:hush@api.test/", // the same, with another user
		"https://hush@api.test/",
		"//:@api.test/hush",
	} {
		t.Run(location, func(t *testing.T) {
			var sent []*http.Request
			source := newSourceFor(t, Options{
				BaseURL: "https://api.test", Resource: pods,
				HTTPClient: &http.Client{Transport: to(location, &sent)},
				Authorize:  func(r *http.Request) error { r.Header.Set("X-Token", "hush"); return nil },
			})
			_, err := source.List(metav1.ListOptions{Continue: "hush"})
			require.ErrorIs(t, err, ErrRedirect)
			require.ErrorContains(t, err, "from https://api.test to ")
			require.NotContains(t, err.Error(), "hush")
			require.Len(t, sent, 1)
		})
	}
}

// For credentials in any header, and for every way to write the address.
func TestCredentialsOfEveryKindStayOnARequestWithinTheOrigin(t *testing.T) {
	for _, location := range []string{
		"/moved", "moved", "//api.test/moved", "https://api.test:443/moved", `/\\evil.test`,
		"?moved",
	} {
		t.Run(location, func(t *testing.T) {
			var sent []*http.Request
			source := newSourceFor(t, Options{
				BaseURL: "https://api.test", Resource: pods,
				HTTPClient: &http.Client{Transport: to(location, &sent)},
				Authorize: func(r *http.Request) error {
					r.SetBasicAuth("user", "pass")
					r.Header.Set("X-Token", "token")
					r.Header.Add("X-Remote-Group", "a")
					r.Header.Add("X-Remote-Group", "b")
					r.AddCookie(&http.Cookie{Name: "session", Value: "s"})
					return nil
				},
			})
			_, err := source.List(metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, sent, 2)
			require.NotEqual(t, sent[0].URL.String(), sent[1].URL.String())
			require.Equal(t, "api.test", strings.ToLower(sent[1].URL.Hostname()))
			for name, values := range sent[0].Header {
				require.Equal(t, values, sent[1].Header[name], name)
			}
		})
	}
}

// net/http compares hosts byte by byte, and treats these as different.
func TestAHostInCapitalLettersGetsTheCredentials(t *testing.T) {
	var sent []*http.Request
	source := newSourceFor(t, Options{
		BaseURL: "https://api.test", Resource: pods,
		HTTPClient: &http.Client{Transport: to("https://API.test/moved", &sent)},
		Authorize: func(r *http.Request) error {
			r.Header.Set("Authorization", "Bearer t")
			r.Header.Set("Cookie", "session=s")
			return nil
		},
	})
	_, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, sent, 2)
	require.Equal(t, "Bearer t", sent[1].Header.Get("Authorization"))
	require.Equal(t, "session=s", sent[1].Header.Get("Cookie"))
}

// A second redirect is compared with the address of the first request.
func TestEachRedirectOfAChainIsChecked(t *testing.T) {
	requests := 0
	source := newSource(t, server(func(*http.Request) (*http.Response, error) {
		requests++
		return newResponse(
			http.StatusFound, textBody(""), "Location",
			[]string{"/moved", "http://evil.test/"}[requests-1]), nil
	}))
	_, err := source.List(metav1.ListOptions{})
	require.ErrorIs(t, err, ErrRedirect)
	require.Equal(t, 2, requests)
}

// A client that follows no redirects gets them as responses, which are refusals.
func TestACallerThatFollowsNoRedirectGetsTheRefusal(t *testing.T) {
	var sent []*http.Request
	closed := &closing{Reader: strings.NewReader("see https://hush@api.test/")}
	client := &http.Client{
		Transport: server(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r)
			return newResponse(
				http.StatusFound, closed, "Location", "/moved?hush", "Content-Type", "text/html",
			), nil
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	source := newSourceFor(
		t, Options{BaseURL: "https://api.test", Resource: pods, HTTPClient: client})
	_, err := source.List(metav1.ListOptions{})
	var refused *apierrors.StatusError
	require.ErrorAs(t, err, &refused)
	require.EqualValues(t, http.StatusFound, refused.ErrStatus.Code)
	require.NotContains(t, err.Error(), "hush")
	require.Len(t, sent, 1)
	require.True(t, closed.closed)
}

// A function that checks something else and permits the rest is common, and disables net/http's own
// limit.
func TestTheCallersCheckRedirectDoesNotLiftTheLimit(t *testing.T) {
	requests := 0
	client := &http.Client{
		Transport: server(func(r *http.Request) (*http.Response, error) {
			if requests++; requests > 2*maxRedirects {
				return nil, errors.New("in circles")
			}
			return newResponse(http.StatusFound, textBody(""), "Location", r.URL.Path), nil
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return nil },
	}
	_, err := newSourceFor(
		t, Options{BaseURL: "http://api.test", Resource: pods, HTTPClient: client}).List(
		metav1.ListOptions{})
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.Equal(t, maxRedirects, requests)
}

func TestTheCallersCheckRedirectIsNotCalledForAnotherOrigin(t *testing.T) {
	client := &http.Client{
		Transport:     respondWith(http.StatusFound, "", "Location", "http://evil.test/"),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	_, err := newSourceFor(
		t, Options{BaseURL: "http://api.test", Resource: pods, HTTPClient: client}).List(
		metav1.ListOptions{})
	require.ErrorIs(t, err, ErrRedirect)
}
