package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// Secrets in the requests of this test, from this package's caller, a lower transport, a cookie
// jar, and the query.
const (
	echoToken    = `Tok/en+with="marks"%41&more`
	echoPassword = "pass+word"
	echoKey      = "k3y"
	echoTenant   = "umbrella-corp"
	echoCookie   = "c00kie-monster"
	echoSelector = "owner=jane-doe,size>5,zone in (a,b)"
	echoContinue = "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"
	echoQuery    = "qu3ry&tok/en"
)

var echoed = []string{
	echoToken, echoPassword, echoKey, echoTenant, echoCookie, echoSelector, echoContinue, echoQuery,
}

// loggingIn is a transport that logs in by itself, and requests again with another login if the
// first is refused.
type loggingIn struct{ next http.RoundTripper }

func (l loggingIn) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+echoToken)
	r.Header["x-api-key"] = []string{echoKey}
	r.Header.Set("X-Tenant", echoTenant)
	query := r.URL.Query()
	query.Set("access_token", echoQuery)
	r.URL.RawQuery = query.Encode()
	refused, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_ = refused.Body.Close()
	r = r.Clone(r.Context())
	r.SetBasicAuth("jane", echoPassword)
	return l.next.RoundTrip(r)
}

// received has the requests that a server received and may repeat. No error can have all of them,
// so each response begins with another part.
type received struct {
	mu     sync.Mutex
	pieces []string
	turn   int
}

func (e *received) of(r *http.Request) string {
	decoded, _ := url.QueryUnescape(r.URL.RawQuery)
	_, password, _ := r.BasicAuth()
	pieces := []string{r.URL.String(), decoded, "password " + password}
	for name, values := range r.Header {
		pieces = append(pieces, name+": "+strings.Join(values, " "))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, piece := range pieces {
		if !slices.Contains(e.pieces, piece) {
			e.pieces = append(e.pieces, piece)
		}
	}
	e.turn++
	from := e.turn / 2 % len(e.pieces) // each call makes two requests
	return strings.Join(slices.Concat(e.pieces[from:], e.pieces[:from]), " ")
}

func asJSON(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

func asStatus(text string) string {
	return asJSON(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: 403, Message: text,
		Reason:  metav1.StatusReason(text),
		Details: &metav1.StatusDetails{Name: text, Causes: []metav1.StatusCause{{Message: text}}},
	})
}

// A server that repeats the request, from any caller and in any form, cannot make an error or
// warning show a secret. Everything else in its text is shown.
func TestErrorsHideHeadersAddedByALowerTransport(t *testing.T) {
	plain := func(escape func(string) string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, escape(text))
		}
	}
	header := func(name string, escape func(string) string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(name, escape(text))
			_, _ = io.WriteString(w, podList())
		}
	}
	same := func(text string) string { return text }
	inJSON := func(text string) string { return asJSON(text) }
	echoes := map[string]func(http.ResponseWriter, string){
		"a Status": func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(403)
			_, _ = io.WriteString(w, asStatus(text))
		},
		"a Status with code 200": func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, asStatus(text))
		},
		"an ERROR frame": func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"ERROR","object":`+asStatus(text)+"}\n")
		},
		"a type of event": func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":`+asJSON(text)+`,"object":5}`+"\n")
		},
		"text":                 plain(same),
		"text in lower case":   plain(strings.ToLower),
		"JSON in text":         plain(inJSON),
		"JSON in JSON in text": plain(func(text string) string { return asJSON(asJSON(text)) }),
		"HTML escapes":         plain(html.EscapeString),
		"URL escapes":          plain(url.QueryEscape),
		"path escapes":         plain(url.PathEscape),
		"the type":             header("Content-Type", same),
		"the encoding":         header("Content-Encoding", same),
		"a warning": header(
			"Warning", func(text string) string { return "299 - " + inJSON(text) }),
		"another host": func(w http.ResponseWriter, text string) {
			w.Header().Set(
				"Location", "http://"+strings.ToUpper(echoTenant)+".test/"+url.PathEscape(text))
			w.WriteHeader(302)
		},
	}
	for protocol, set := range map[string]func(*http.Protocols){
		"HTTP/1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		for name, echo := range echoes {
			t.Run(protocol+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var protocols http.Protocols
					set(&protocols)
					client := echoing(t, &protocols, echo)
					reported := echoedTo(t, client)
					require.NotEmpty(t, reported)
					if !strings.HasPrefix(name, "the ") && name != "another host" &&
						name != "a type of event" {
						require.Contains(t, reported, "12345", "a version")
						require.Contains(t, strings.ToLower(reported), "application")
					}
					requireSilent(t, reported)
				})
			})
		}
	}
}

// echoing returns a client of a server that responds with the function.
func echoing(
	t *testing.T, protocols *http.Protocols, answer func(http.ResponseWriter, string),
) *http.Client {
	t.Helper()
	listener := cachetest.NewListener()
	var all received
	server := &http.Server{
		Protocols: protocols,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer(w, all.of(r))
		}),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	transport := &http.Transport{DialContext: listener.DialContext, Protocols: protocols}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	api := &url.URL{Scheme: "http", Host: "api.test"}
	jar.SetCookies(
		api, []*http.Cookie{{Name: "session", Value: echoCookie}, {Name: "consent", Value: "1"}})
	return &http.Client{Transport: loggingIn{transport}, Jar: jar}
}

// echoedTo returns everything that a list and a watch of that server report.
func echoedTo(t *testing.T, client *http.Client) string {
	t.Helper()
	var reported strings.Builder
	source := newSourceFor(t, Options{
		BaseURL: "http://api.test", Resource: pods, HTTPClient: client, LabelSelector: echoSelector,
		OnWarning: func(_ context.Context, text string) { reported.WriteString(text) },
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	options := metav1.ListOptions{Continue: echoContinue, ResourceVersion: "12345"}
	for range 15 {
		if _, err := source.ListWithContext(ctx, options); err != nil {
			fmt.Fprintf(&reported, "%+v %#v", err, err)
		}
		w, err := source.WatchWithContext(ctx, options)
		if err != nil {
			fmt.Fprintf(&reported, "%+v %#v", err, err)
			continue
		}
		for event := range w.ResultChan() {
			fmt.Fprintf(&reported, "%+v", apierrors.FromObject(event.Object))
			switch object := event.Object.(type) {
			case *UndecodableObject:
				reported.WriteString(object.DecodeError().Error())
			case *metav1.Status:
				reported.WriteString(asJSON(object))
			}
		}
	}
	return reported.String()
}

// requireSilent fails if a text has one of the secrets, plain or escaped.
func requireSilent(t *testing.T, reported string) {
	t.Helper()
	reported = strings.ToLower(reported)
	for _, secret := range echoed {
		inText := strings.Trim(asJSON(secret), `"`)
		for _, form := range slices.Compact([]string{
			secret, inText, strings.Trim(asJSON(inText), `"`), html.EscapeString(secret),
			url.QueryEscape(secret), url.PathEscape(secret),
		}) {
			require.NotContains(t, reported, strings.ToLower(form), "of %q", secret)
		}
	}
}

// An error's text is truncated, possibly in the middle of a token, or of an escape in it.
func TestASecretIsHiddenWhereATextIsTruncated(t *testing.T) {
	const token, beginning = "q/w/e/r/t/y/u/i/o/p/a/s/d/f/g", "q/w/e/r"
	escaped := map[string]func(string) string{
		"as it is": func(text string) string { return text },
		"in a URL": url.QueryEscape,
		"in JSON":  func(text string) string { return strings.ReplaceAll(text, "/", `\u002f`) },
		"in HTML":  func(text string) string { return strings.ReplaceAll(text, "/", "&#x2f;") },
	}
	for name, escape := range escaped {
		t.Run(name, func(t *testing.T) {
			for short := range 100 {
				body := strings.Repeat("x", maxForeignText-short) + escape(token)
				source := newSourceOf(
					t,
					respondWith(500, body, "Content-Type", "text/plain"),
					Options{Authorize: func(r *http.Request) error {
						r.Header.Set("X-Login", token)
						return nil
					}},
				)
				_, err := source.List(metav1.ListOptions{})
				require.NotContains(t, err.Error(), escape(beginning))
			}
		})
	}
}

// Values of a few characters, and words that are common in messages, are not secrets. Replacing
// them would make messages useless.
func TestPublicHeaderValuesStayInErrors(t *testing.T) {
	const message = `User "jane" cannot list pods with code 1: gzip of application/json at version 123456 is not there`
	client := &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
		return respondWith(403, asStatus(message), "Content-Type", "application/json")(r)
	})}
	source := newSourceFor(
		t,
		Options{
			BaseURL:    "http://api.test",
			Resource:   pods,
			HTTPClient: client,
			Authorize: func(r *http.Request) error {
				for name, value := range map[string]string{
					"Authorization": "Bearer e", "X-Token": "t", "X-Attempt": "1",
					"X-Packed":         "gzip",
					"Content-Type":     "application/json",
					"Impersonate-User": "jane", "Cookie": "consent=1; mode=code",
				} {
					r.Header.Set(name, value)
				}
				return nil
			},
		},
	)
	_, err := source.List(metav1.ListOptions{ResourceVersion: "123456", Continue: "a"})
	require.ErrorContains(t, err, message)
}
