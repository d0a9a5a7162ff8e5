package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// endless is a body that begins with a text and then repeats another forever.
type endless struct {
	begin  []byte
	repeat []byte
	read   int64
}

func newEndless(begin, repeat string) *endless {
	return &endless{
		begin:  []byte(begin),
		repeat: bytes.Repeat([]byte(repeat), 64<<10/len(repeat)+1),
	}
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	if len(e.begin) > 0 {
		n = copy(p, e.begin)
		e.begin = e.begin[n:]
	} else if n = copy(p, e.repeat); n < len(e.repeat) {
		// The next Read continues after this one.
		e.repeat = append(e.repeat[n:len(e.repeat):len(e.repeat)], e.repeat[:n]...)
	}
	e.read += int64(n)
	return n, nil
}

func (e *endless) Close() error { return nil }

func TestBodiesThatNeverEndAreErrorsOfBoundedMemory(t *testing.T) {
	const list = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},`
	for name, test := range map[string]struct {
		watch         bool
		begin, repeat string
	}{
		"blanks before a list":      {false, ``, "\n"},
		"one endless string":        {false, list + `"items":[{"metadata":{"name":"`, "x"},
		"one endless item":          {false, list + `"items":[{"metadata":{"labels":{`, `"a":"b",`},
		"nesting without end":       {false, list + `"items":[{"metadata":`, `{"a":`},
		"endless other field":       {false, list + `"items":[],"more":"`, "x"},
		"endless field name":        {false, `{"`, "x"},
		"endless token":             {false, `{"metadata":{"continue":"`, "x"},
		"endless rows":              {false, `{"kind":"Whatever","rows":[`, `{},`},
		"blanks after the list":     {false, podList(), " "},
		"blanks between frames":     {true, frameJSON("ADDED", podJSON("a", 1)), "\n"},
		"one endless frame":         {true, `{"type":"ADDED","object":{"metadata":{"name":"`, "x"},
		"one endless line of lists": {true, `{"type":"ADDED","object":{"a":[`, "[],"},
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 1 << 20
			body := newEndless(test.begin, test.repeat)
			source := newSourceOf(t, server(func(*http.Request) (*http.Response, error) {
				return newResponse(200, body), nil
			}), Options{Limits: Limits{ItemBytes: limit}})
			before := heapBytes()
			if !test.watch {
				_, err := source.List(metav1.ListOptions{})
				require.ErrorIs(t, err, ErrTooLarge)
			} else {
				w, err := source.Watch(metav1.ListOptions{})
				require.NoError(t, err)
				var last watch.Event
				for event := range w.ResultChan() {
					last = event
				}
				require.Equal(t, watch.Error, last.Type)
				require.Contains(t, last.Object.(*metav1.Status).Message, ErrTooLarge.Error())
			}
			require.Less(t, body.read, int64(2*limit+1<<17), "no more than that is read")
			require.Less(t, heapBytes()-before, int64(limit))
		})
	}
}

// counted is a body with a number of copies of one text.
type counted struct {
	text string
	left int
	rest string
}

func (c *counted) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if c.rest == "" {
			if c.left == 0 {
				break
			}
			c.left--
			c.rest = c.text
		}
		k := copy(p[n:], c.rest)
		c.rest = c.rest[k:]
		n += k
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestAMillionTinyFramesAreAMillionEventsAndOneIsHeldAtATime(t *testing.T) {
	const frames = 1_000_000
	body := &counted{text: `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`, left: frames}
	w, err := newSource(t, server(func(*http.Request) (*http.Response, error) {
		return newResponse(200, io.NopCloser(body)), nil
	})).Watch(metav1.ListOptions{})
	require.NoError(t, err)
	before := heapBytes()
	events := 0
	for range w.ResultChan() {
		if events++; events == frames/2 {
			require.Less(t, heapBytes()-before, int64(1<<20))
		}
	}
	require.Equal(t, frames, events)
}

func TestAMillionInvalidFramesEndWithTheFirst(t *testing.T) {
	body := &counted{text: "{}\n", left: 1_000_000}
	events := watched(t, body)
	require.Equal(t, []watch.EventType{watch.Error}, types(events))
	require.Greater(t, body.left, 900_000, "nothing behind it is read")
}

// While one item is received, the server cannot make the source read much further.
func TestNothingIsReadAheadOfTheItemsCallback(t *testing.T) {
	item := `{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", 10_000) + `"},`
	body := &counted{text: item, left: 10_000}
	source := newSource(t, server(func(*http.Request) (*http.Response, error) {
		return newResponse(
			200,
			io.NopCloser(io.MultiReader(strings.NewReader(`{"kind":"PodList","items":[`), body)),
		), nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	received := 0
	_, err := source.ListItems(
		ctx,
		metav1.ListOptions{},
		func(metav1.ListMeta, runtime.Object) error {
			received++
			require.GreaterOrEqual(t, body.left, 10_000-received-20)
			if received == 100 {
				cancel()
			}
			return nil
		},
	)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 100, received, "a call that has ended gives nothing more")
}

func TestFieldsBesideItemsAreBounded(t *testing.T) {
	const media = "application/vnd.kubernetes.protobuf"
	for name, test := range map[string]struct {
		begin, repeat, contentType string
	}{
		"JSON, names": {
			`{"kind":"PodList","items":[]`, `,"` + strings.Repeat("x", 1000) + `":1`,
			"application/json",
		},
		"JSON, a Status": {`{"kind":"Status"`, `,"message":"x"`, "application/json"},
		"JSON, blanks": {
			`{"kind":"PodList","items":[]`, `,"x":` + strings.Repeat(" ", 1000) + `1`,
			"application/json",
		},
		"CBOR, fields":    {"\xbf", "\x41x\x01", "application/cbor"},
		"protobuf, units": {"k8s\x00", "\x50\x01", media},
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 1 << 20
			body := newEndless(test.begin, test.repeat)
			source := newSourceOf(t, server(func(*http.Request) (*http.Response, error) {
				return newResponse(200, body, "Content-Type", test.contentType), nil
			}), Options{Limits: Limits{ItemBytes: limit}, Encodings: []Encoding{CBOR, Protobuf}, ObjectType: &metav1.PartialObjectMetadata{}})
			before := heapBytes()
			_, err := source.List(metav1.ListOptions{})
			require.ErrorIs(t, err, ErrTooLarge)
			require.Less(t, body.read, int64(2*limit+1<<17))
			require.Less(t, heapBytes()-before, int64(limit))
		})
	}
}

// net/http quotes a response that it cannot parse in its error, without a bound.
func TestErrorsOfTheTransportAreOneShortLine(t *testing.T) {
	noise := errors.New("malformed HTTP response: " + strings.Repeat("\x1b[2J\n", 1<<20))
	for name, source := range map[string]*ListerWatcher{
		"request": newSource(t, server(func(*http.Request) (*http.Response, error) { return nil, noise })),
		"body": newSource(t, server(func(*http.Request) (*http.Response, error) {
			return newResponse(200, io.NopCloser(iotest.ErrReader(noise))), nil
		})),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.List(metav1.ListOptions{})
			require.ErrorContains(t, err, "malformed HTTP response")
			require.Less(t, len(err.Error()), 1000)
			require.NotContains(t, err.Error(), "\x1b")
			require.NotErrorIs(t, err, noise, "it would keep all of it")

			w, err := source.Watch(metav1.ListOptions{})
			if err == nil {
				err = apierrors.FromObject((<-w.ResultChan()).Object)
				require.True(t, apierrors.HasStatusCause(err, CauseStreamCut))
				w.Stop()
			}
			require.Less(t, len(err.Error()), 1000)
		})
	}
}

// Some servers respond with the content of the request.
func TestErrorsThatEchoTheRequestHideCredentialsAndQuery(t *testing.T) {
	echo := func(code int, contentType string) server {
		return func(r *http.Request) (*http.Response, error) {
			text := r.Header.Get(
				"Authorization") + " " + r.Header.Get(
				"X-Login") + " " + r.URL.RequestURI()
			return respondWith(code, text, "Content-Type", contentType)(r)
		}
	}
	for name, rt := range map[string]server{
		"error page":   echo(500, "text/plain"),
		"content type": echo(200, "text/plain"),
		"JSON":         echo(200, "application/json"),
		"Status": func(r *http.Request) (*http.Response, error) {
			return respondWith(403, `{"kind":"Status","status":"Failure","message":"`+r.Header.Get("Authorization")+` may not `+r.URL.RequestURI()+`"}`)(r)
		},
		"transport": func(r *http.Request) (*http.Response, error) {
			return nil, errors.New("malformed HTTP status code " + r.URL.RequestURI() + " " + r.Header.Get("Authorization"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := newSourceOf(
				t,
				rt,
				Options{LabelSelector: "secret=selector", Authorize: func(r *http.Request) error {
					r.Header.Set("Authorization", "Bearer s3cret-token")
					r.Header.Set("X-Login", "hunter22")
					return nil
				}},
			)
			for _, call := range []func() error{
				func() error { _, err := source.List(metav1.ListOptions{}); return err },
				func() error {
					w, err := source.Watch(metav1.ListOptions{})
					if err == nil {
						err = apierrors.FromObject((<-w.ResultChan()).Object)
						w.Stop()
					}
					return err
				},
			} {
				err := call()
				require.Error(t, err)
				for _, secret := range []string{"s3cret-token", "hunter22", "selector"} {
					require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), secret)
				}
			}
		})
	}
}

func TestAPanicOfTheCallerLeavesNoResponseOpen(t *testing.T) {
	closed := &closing{Reader: strings.NewReader(podList())}
	source := newSourceOf(t, server(func(*http.Request) (*http.Response, error) {
		return newResponse(200, closed, "Warning", `299 - "old"`), nil
	}), Options{OnWarning: func(context.Context, string) { panic("mine") }})
	require.PanicsWithValue(t, "mine", func() { _, _ = source.List(metav1.ListOptions{}) })
	require.True(t, closed.closed)
}
