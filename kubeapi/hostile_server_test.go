package kubeapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

const listHead = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`

// without writes a text, then another one endlessly.
func without(end string) func(string) func(http.ResponseWriter, *http.Request) {
	block := strings.Repeat(end, max(1, 32<<10/len(end)))
	return func(begin string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, begin)
			for err == nil {
				_, err = io.WriteString(w, block)
			}
		}
	}
}

func numbered(n int) string {
	return fmt.Sprintf(
		`{"metadata":{"namespace":"shop","name":"p-%d","uid":"u-%d","resourceVersion":"1"}}`, n, n)
}

// endless writes items endlessly.
func endless(w http.ResponseWriter, _ *http.Request) {
	_, err := io.WriteString(w, listHead+numbered(0))
	for n := 1; err == nil; n++ {
		_, err = io.WriteString(w, ","+numbered(n))
	}
}

// page writes a page of n items with a token for another page.
func page(n int, token func(r *http.Request) string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		var items []string
		for i := range n {
			items = append(items, numbered(len(r.URL.Query().Get("continue"))*1000+i))
		}
		_, _ = fmt.Fprintf(
			w,
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%s"},"items":[%s]}`,
			token(r), strings.Join(items, ","))
	}
}

// longer returns a token that no page had yet, of at least size bytes.
func longer(size int) func(*http.Request) string {
	return func(r *http.Request) string {
		return "hostile-t0ken" + strings.Repeat(
			"x", max(size, len(r.URL.Query().Get("continue"))+1-len("hostile-t0ken")))
	}
}

// bomb writes a text, then another one so many times, in gzip: one member of the format for the
// first, and one for each MiB.
func bomb(begin, text string, times int) func(http.ResponseWriter, *http.Request) {
	packed := func(text string) []byte {
		var member bytes.Buffer
		zip := gzip.NewWriter(&member)
		_, _ = io.WriteString(zip, text)
		_ = zip.Close()
		return member.Bytes()
	}
	block := strings.Repeat(text, 1+(1<<20)/len(text))
	head := packed(begin)
	member := packed(block)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, err := w.Write(head)
		for sent := 0; err == nil && sent < times*len(text); sent += len(block) {
			_, err = w.Write(member)
		}
	}
}

// echo returns the content of a request, as a hostile text.
func echo(r *http.Request) string {
	return "\\u001b[2J\\nFAKE log line \\u202e" + r.Header.Get(
		"Authorization") + " " + r.Header.Get(
		"Cookie") + " " +
		r.Header.Get(
			"X-Proxy-Authorization") + " " + r.URL.RequestURI()
}

func refuse(code int, padding int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(
			w,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":"%s","message":"%s`,
			code, echo(r), echo(r))
		frames(kilobyte, padding)(w, r)
		_, _ = io.WriteString(w, `"}`)
	}
}

func redirect(location string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(
			"Location",
			location+"?token="+strings.ReplaceAll(r.Header.Get("Authorization"), " ", "+"))
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

var kilobyte = strings.Repeat("m", 1<<10)

func frames(text string, times int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for range times {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

// raw takes over the connection of a request.
func raw(write func(net.Conn)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		write(conn)
	}
}

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = append(head, flags)
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

const (
	dataFrame, headersFrame, resetFrame, settingsFrame, awayFrame, moreHeadersFrame = 0, 1, 3, 4, 7, 9
	endHeaders                                                                      = 4
	firstStream                                                                     = 1
)

// jsonHeaders are ":status: 200" and "content-type: application/json" in HPACK.
var jsonHeaders = append([]byte{0x88, 0x0f, 0x10, 16}, "application/json"...)

// http2 is a server that responds to the first request of a connection with these frames,
// repeatedly if repeats is set.
func http2(repeats bool, frames ...[]byte) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Write(frame(settingsFrame, 0, 0, nil))
		// The preface, the settings and the request come first, and are ignored.
		buffer := make([]byte, 64<<10)
		for read := 0; read < 200; {
			n, err := conn.Read(buffer)
			if read += n; err != nil {
				return
			}
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for began := time.Now(); ; {
			time.Sleep(time.Second) // virtual time advances only while all goroutines wait
			for _, f := range frames {
				if _, err := conn.Write(f); err != nil {
					return
				}
			}
			if !repeats || time.Since(began) > 150*time.Second { // after the client has given up
				return
			}
		}
	}
}

const (
	tooLarge = cache.Cause("response-too-large")
	invalid  = cache.Cause("invalid-response")
	stalled  = cache.Cause("stalled")
)

var hostile = map[string]attack{
	"items without end": {
		respond:   endless,
		limits:    kubeapi.Limits{Objects: 10_000},
		reports:   thrice(tooLarge),
		mebibytes: 80,
	},
	"items without end, in a streaming list": {
		watch:     true,
		strategy:  cache.ListStreaming,
		respond:   frames(`{"type":"ADDED","object":`+numbered(1)+"}\n", 1<<30),
		limits:    kubeapi.Limits{Objects: 10_000},
		attacks:   2,
		reports:   map[cache.Cause]int{invalid: 2},
		mebibytes: 80,
	},
	"pages without end": {
		respond:   page(100, longer(60<<10)),
		limits:    kubeapi.Limits{Objects: 10_000},
		reports:   thrice(tooLarge),
		mebibytes: 80,
	},
	"pages without items and end": {
		respond:   page(0, longer(100)),
		reports:   thrice(cache.CauseOther),
		mebibytes: 80,
	},
	"a continue token that repeats": {
		respond:   page(1, func(*http.Request) string { return "hostile-t0ken" }),
		reports:   thrice(cache.CauseOther),
		mebibytes: 40,
	},
	"a continue token of megabytes": {
		respond:   page(1, longer(4<<20)),
		reports:   thrice(tooLarge),
		mebibytes: 80,
	},
	"a string without end": {
		respond:   without("x")(listHead + `{"metadata":{"name":"`),
		reports:   thrice(tooLarge),
		mebibytes: 160,
	},
	"a field name without end": {
		respond:   without("x")(`{"`),
		reports:   thrice(tooLarge),
		mebibytes: 160,
	},
	"blanks without end": {
		respond:   without(" ")(listHead),
		reports:   thrice(tooLarge),
		mebibytes: 160,
	},
	"nesting without end": {
		respond:   without(`{"a":`)(listHead),
		reports:   thrice(tooLarge),
		mebibytes: 160,
	},
	"an object of 100,000 levels": {
		respond: frames(
			listHead+strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)+"]}", 1),
		lies:      true,
		reports:   map[cache.Cause]int{"divergence": 1, "invalid-object": 2, "regression": 1},
		mebibytes: 40,
	},
	"an object of three million values": {
		respond:   frames(listHead+`{"a":[`+strings.Repeat("{},", 3<<20)+"{}]}]}", 1),
		lies:      true,
		reports:   map[cache.Cause]int{"divergence": 1, "invalid-object": 2, "regression": 1},
		mebibytes: 160,
	},
	"a bomb of one item": {
		respond:   bomb(listHead+`{"a":"`, "x", 1<<30),
		reports:   thrice(tooLarge),
		mebibytes: 160,
	},
	"a bomb of blanks": {
		respond:   bomb(listHead, " ", 1<<30),
		reports:   thrice(tooLarge),
		mebibytes: 160,
	},
	"a bomb of items": {
		respond:   bomb(listHead, numbered(1)+",", 5_000_000),
		limits:    kubeapi.Limits{Objects: 10_000},
		reports:   thrice(tooLarge),
		mebibytes: 80,
	},
	"a Status of megabytes": {
		respond:   refuse(500, 8<<10),
		reports:   thrice(cache.CauseInternal),
		mebibytes: 40,
	},
	"a Status with control characters": {
		respond:   refuse(403, 0),
		reports:   thrice(cache.CauseForbidden),
		mebibytes: 40,
	},
	"an endless error page": {
		respond:   func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502); without(echo(r))("")(w, r) },
		reports:   thrice(cache.CauseInternal),
		mebibytes: 40,
	},
	"an error page that never ends": {respond: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(502)
		flushed(w, echo(r))
		<-r.Context().Done()
	}, reports: thrice(cache.CauseInternal), mebibytes: 40},
	"another content type": {respond: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=none")
		_, _ = io.WriteString(w, "<html>"+echo(r))
	}, reports: thrice(invalid), mebibytes: 40},
	"headers without end": {respond: raw(func(conn net.Conn) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(conn, "X-Header: "+strings.Repeat("x", 1000)+"\r\n")
		}
	}), reports: thrice(cache.CauseOther), mebibytes: 80},
	"no HTTP": {
		respond: raw(
			func(conn net.Conn) { _, _ = io.WriteString(conn, "\x1b[2J\nFAKE bearer-s3cret") }),
		reports:   thrice(cache.CauseOther),
		mebibytes: 40,
	},
	"warnings without end": {
		respond:   warn,
		reports:   thrice(cache.CauseUnavailable),
		mebibytes: 40,
	},
	"a redirect to another host": {
		respond:   redirect("https://evil.test/api/v1/pods"),
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"a redirect to http": {
		respond:   redirect("http://api.test/api/v1/pods"),
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"a redirect to another port": {
		respond:   redirect("https://api.test:8443/api/v1/pods"),
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"a redirect in a circle": {respond: redirect(""), mebibytes: 40},
	"a redirect to a long host": {
		respond:   redirect("https://a" + strings.Repeat("&amp;", 100_000)),
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"a redirect to a long query": {
		respond:   redirect("?a=" + strings.Repeat("12345&b=", 100_000)),
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"headers that never come": {
		respond:   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		reports:   thrice(stalled),
		mebibytes: 40,
	},
	"a list that trickles": {
		respond:   trickle(listHead+numbered(1)+",", 30*time.Second),
		reports:   thrice(stalled),
		mebibytes: 40,
	},
	"names with control characters": {
		respond: frames(
			listHead+`{"metadata":{"namespace":"shop","name":"\u001b[2J\nFAKE line\u202e","resourceVersion":"1"}},`+
				`{"kind":"\u001b[2J\nFAKE","metadata":{"namespace":"shop","name":"\u001b]0;title\u0007","resourceVersion":"\u001b[2J\nFAKE"},"metadata":1}]}`,
			1,
		),
		lies:      true,
		attacks:   1,
		reports:   map[cache.Cause]int{"divergence": 1, "invalid-object": 1},
		mebibytes: 40,
	},

	"watch: a million frames": {
		watch:     true,
		respond:   frames(`{"type":"MODIFIED","object":`+numbered(1)+"}\n", 333_334),
		lies:      true,
		reports:   map[cache.Cause]int{"divergence": 1},
		mebibytes: 80,
	},
	"watch: a million frames of none": {
		watch:     true,
		respond:   frames("{}\n", 1_000_000),
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"watch: ten thousand nameless": {
		watch:     true,
		respond:   frames(`{"type":"MODIFIED","object":{"metadata":{}}}`+"\n", 10_000),
		reports:   map[cache.Cause]int{"invalid-object": 64 * attacks, invalid: attacks},
		mebibytes: 80,
	},
	"watch: a frame without end": {
		watch:     true,
		respond:   without("x")(`{"type":"ADDED","object":{"metadata":{"name":"`),
		reports:   thrice(invalid),
		mebibytes: 160,
	},
	"watch: nesting without end": {
		watch:     true,
		respond:   without("[")(`{"type":"ADDED","object":{"a":`),
		reports:   thrice(invalid),
		mebibytes: 160,
	},
	"watch: blanks without end": {
		watch:     true,
		respond:   without("\n")(""),
		reports:   thrice(invalid),
		mebibytes: 160,
	},
	"watch: a frame that trickles": {
		watch: true,
		respond: trickle(
			`{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","namespace":"b"}}}`,
			time.Second),
		reports:   thrice(cache.CauseConnectionLost),
		mebibytes: 40,
	},
	"watch: a Status of megabytes": {
		watch: true,
		respond: func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(
				w,
				`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"%s`,
				echo(r))
			frames(kilobyte, 8<<10)(w, r)
			_, _ = io.WriteString(w, `"}}`)
		},
		reports:   thrice("stream-error"),
		mebibytes: 160,
	},
	"watch: another content type": {
		watch: true,
		respond: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>"+echo(r))
		},
		reports:   thrice(invalid),
		mebibytes: 40,
	},
	"watch: types with control characters": {
		watch: true,
		respond: frames(
			`{"type":"\u001b[2J\nFAKE","object":{"metadata":{"name":"\u001b[2J"}}}`+"\n", 1),
		lies:      true,
		reports:   map[cache.Cause]int{"invalid-object": 2, invalid: 1},
		mebibytes: 40,
	},

	"HTTP/2: a list that is reset": {
		http2: true,
		respond: func(w http.ResponseWriter, _ *http.Request) {
			flushed(w, listHead+numbered(1))
			panic(http.ErrAbortHandler)
		},
		reports:   thrice(cache.CauseConnectionLost),
		mebibytes: 40,
	},
	"HTTP/2: a watch that is reset": {
		http2:     true,
		watch:     true,
		respond:   func(w http.ResponseWriter, _ *http.Request) { flushed(w, `{"type":`); panic(http.ErrAbortHandler) },
		reports:   thrice(cache.CauseConnectionLost),
		mebibytes: 40,
	},
	"HTTP/2: a request that is reset": {
		http2:      true,
		connection: http2(false, frame(resetFrame, 0, firstStream, []byte{0, 0, 0, 2})),
		reports:    thrice(cache.CauseConnectionLost),
		mebibytes:  40,
	},
	"HTTP/2: GOAWAY in a list": {
		http2: true,
		connection: http2(
			false, frame(headersFrame, endHeaders, firstStream, jsonHeaders),
			frame(dataFrame, 0, firstStream, []byte(listHead)),
			frame(awayFrame, 0, 0, []byte{0, 0, 0, 0, 0, 0, 0, 2})),
		reports:   thrice(cache.CauseConnectionLost),
		mebibytes: 40,
	},
	"HTTP/2: headers without end": {
		http2: true,
		connection: http2(
			true,
			frame(headersFrame, 0, firstStream, jsonHeaders),
			bytes.Repeat(
				frame(
					moreHeadersFrame, 0, firstStream,
					append([]byte{0, 1, 'x', 100}, strings.Repeat("x", 100)...)),
				1<<10,
			),
		),
		reports:   thrice(cache.CauseOther),
		mebibytes: 80,
	},
	"HTTP/2: pings without end": {
		http2:      true,
		connection: http2(true, bytes.Repeat(frame(6, 0, 0, make([]byte, 8)), 1000)),
		reports:    thrice(stalled),
		mebibytes:  80,
	},
}

// thrice returns one report for each attack.
func thrice(cause cache.Cause) map[cache.Cause]int { return map[cache.Cause]int{cause: attacks} }

func flushed(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// trickle sends a text byte by byte, repeatedly.
func trickle(text string, pause time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			for i := range text {
				flushed(w, text[i:i+1])
				select {
				case <-r.Context().Done():
					return
				case <-time.After(pause):
				}
			}
		}
	}
}

func warn(w http.ResponseWriter, r *http.Request) {
	for i := range 5000 {
		w.Header().Add(
			"Warning", fmt.Sprintf(`299 - "%d \u001b[2J %s"`, i, r.Header.Get("Authorization")))
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// Each attack meets an informer over HTTP three times in a row; then the server is good. Fails if
// the heap grows beyond the bound, if an attack is not reported once with its cause, if the
// informer does not equal the good server afterwards, if a credential or a control character
// appears in a log, error, status or page, or if a request reaches another server.
func TestAHostileServer(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.Contains(name, "a million frames") {
				t.Skip("100 MB of frames")
			}
			v := &victim{attack: hostile[name]}
			real := time.Now()
			heap, took, seen := v.suffers(t)
			t.Logf(
				"hostile | %s | %.1f MiB sent | heap +%.1f MiB | %v | log %d bytes | good again after %s, %d requests | %s",
				name, float64(v.sent.Load())/(1<<20), float64(heap)/(1<<20), seen.reports, seen.log,
				took, v.requests.Load(), time.Since(real).Round(time.Millisecond))
			seen.requireDecent(t)
			require.Zero(t, v.elsewhere.Load(), "requests elsewhere")
			require.LessOrEqual(t, heap, int64(v.attack.mebibytes)<<20)
			require.Equal(t, v.attack.reports, seen.reports)
		})
	}
}
