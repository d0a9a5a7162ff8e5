package world

import (
	"net/http"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

// answers records the responses of a handler, before they are damaged.
func (r *Recorder) answers(next http.Handler) http.Handler {
	if r == nil {
		return next
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, request *http.Request) {
		answer := &recordedAnswer{ResponseWriter: rw, body: recording.Body{
			Method: request.Method, Path: request.URL.Path, Query: request.URL.RawQuery, Code: http.StatusOK,
		}}
		// A handler may end a response by a panic.
		defer func() { r.add(recording.Line{Do: recording.Answer, Answer: answer.recorded()}) }()
		next.ServeHTTP(answer, request)
	})
}

// recordedAnswer copies each write. It belongs to the handler's goroutine.
type recordedAnswer struct {
	http.ResponseWriter
	body recording.Body
}

func (a *recordedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *recordedAnswer) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (a *recordedAnswer) WriteHeader(code int) {
	a.body.Code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *recordedAnswer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), recording.MaxBody-len(a.body.Content))]
	a.body.Content = append(a.body.Content, kept...)
	a.body.Cut = a.body.Cut || len(kept) < len(p)
	return a.ResponseWriter.Write(p)
}

func (a *recordedAnswer) recorded() *recording.Body {
	header := a.Header()
	a.body.ContentType, a.body.RetryAfter, a.body.Date = header.Get("Content-Type"), header.Get("Retry-After"), header.Get("Date")
	return &a.body
}
