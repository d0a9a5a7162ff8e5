package statuspage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/watchmirror/cache"
)

// Handler returns a handler that shows the registered caches. The page depends only on the query, so the handler can be
// mounted under any path:
//
//	                         all caches
//	?name=NAME               one cache
//	?name=NAME&prefix=PREFIX keys that begin with PREFIX
//	?name=NAME&key=KEY       one object
//
// With format=json, or if the request accepts application/json and not text/html, the response is JSON. There is no
// authentication; see the package documentation.
func Handler(registry *Registry) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request{registry, w, r}.serve()
	})
}

type request struct {
	registry *Registry
	w        http.ResponseWriter
	r        *http.Request
}

// keysOnPage is the number of keys on a page.
const keysOnPage = 200

func (q request) serve() {
	header := q.w.Header()
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	if q.r.Method != http.MethodGet && q.r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		q.fail(http.StatusMethodNotAllowed, "only GET and HEAD are answered")
		return
	}
	query, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		q.fail(http.StatusBadRequest, "the query cannot be parsed")
		return
	}
	name := query.Get("name")
	if name == "" {
		q.overview()
		return
	}
	e := q.registry.find(name)
	switch {
	case e == nil:
		q.fail(http.StatusNotFound, "there is no cache of this name")
	case query.Has("key"):
		q.object(e, query.Get("key"))
	case query.Has("prefix"):
		q.keys(e, query.Get("prefix"), query.Get("after"))
	default:
		q.one(e)
	}
}

// fail responds with an error.
func (q request) fail(code int, text string) {
	if q.wantsJSON() {
		q.json(code, map[string]string{"error": text})
		return
	}
	q.page(code, "error", errorPage{text})
}

func (q request) wantsJSON() bool {
	if format := q.r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	accept := strings.Join(q.r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func (q request) json(code int, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(q.w, "the status cannot be encoded as JSON", http.StatusInternalServerError)
		return
	}
	q.answer(code, "application/json", append(escapeControls(text), '\n'))
}

// escapeControls escapes the control characters that encoding/json leaves in strings: DEL and those of C1, which a
// terminal may interpret.
func escapeControls(text []byte) []byte {
	escaped := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if 0x7f <= r && r <= 0x9f {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
			continue
		}
		escaped = utf8.AppendRune(escaped, r)
	}
	return escaped
}

func (q request) page(code int, name string, data any) {
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, name, page{Style: template.CSS(style), Content: data}); err != nil {
		http.Error(q.w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	if every, err := strconv.Atoi(q.r.URL.Query().Get("refresh")); err == nil && every > 0 && every <= 3600 {
		q.w.Header().Set("Refresh", strconv.Itoa(every))
	}
	q.answer(code, "text/html; charset=utf-8", bytes.Map(visible, text.Bytes()))
}

// visible replaces control characters, which names and error texts may contain and a terminal would interpret.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

func (q request) answer(code int, contentType string, text []byte) {
	q.w.Header().Set("Content-Type", contentType)
	q.w.WriteHeader(code)
	_, _ = q.w.Write(text) // the client may have disconnected
}

// status samples a cache and returns its status and number of objects.
func (q request) status(e *entry) statusOf {
	raw, now := e.sample(q.registry.interval())
	s := statusOf{Name: e.name, Status: raw, now: now}
	if objects, known := e.snapshot(); known {
		s.Objects = new(objects.Len())
	}
	return s
}

// page is the data of each template.
type page struct {
	Style   template.CSS
	Content any
}

// top is the data of the template for the beginning of a page.
type top struct {
	Title string
	Style template.CSS
}

// Top is called by the templates.
func (p page) Top(title string) top { return top{title, p.Style} }

type errorPage struct{ Text string }

type overviewRow struct {
	statusOf
	Events plot `json:"-"`
}

type overviewPage struct {
	Time   time.Time     `json:"time"`
	Caches []overviewRow `json:"caches"`
}

func (q request) overview() {
	p := overviewPage{Time: time.Now().UTC(), Caches: []overviewRow{}}
	for _, e := range q.registry.all() {
		s := q.status(e)
		samples, _ := e.past()
		p.Caches = append(p.Caches, overviewRow{s, newPlot("Events per second", eventRate(samples), formatNumber, "")})
	}
	if q.wantsJSON() {
		q.json(http.StatusOK, p)
		return
	}
	q.page(http.StatusOK, "overview", p)
}

type onePage struct {
	statusOf
	History []change     `json:"history"`
	Samples []sampleJSON `json:"samples"`
	Plots   []plot       `json:"-"`
	// HasObjects is true if the keys can be shown.
	HasObjects bool `json:"-"`
}

// sampleJSON is a sample in which null means unknown.
type sampleJSON struct {
	Time      time.Time `json:"time"`
	Events    *float64  `json:"eventsPerSecond"`
	Staleness *float64  `json:"stalenessSeconds"`
	Backlog   *float64  `json:"backlog"`
}

func (q request) one(e *entry) {
	p := onePage{statusOf: q.status(e), HasObjects: e.objects != nil}
	samples, changes := e.past()
	p.History = changes
	events, stale, backlog := eventRate(samples), stalenessOf(samples), backlogOf(samples)
	if q.wantsJSON() {
		p.Samples = []sampleJSON{}
		for i, s := range samples[min(1, len(samples)):] {
			p.Samples = append(p.Samples, sampleJSON{s.Time, known(events[i].value), known(s.Staleness), known(s.Backlog)})
		}
		q.json(http.StatusOK, p)
		return
	}
	const noHandler = "It has no handler that receives events."
	p.Plots = []plot{
		newPlot("Events per second", events, formatNumber, noHandler),
		newPlot("Staleness", stale, formatSeconds, "It is not known: nothing has shown yet that the cache is current."),
		newPlot("Backlog", backlog, formatNumber, noHandler),
	}
	q.page(http.StatusOK, "one", p)
}

func known(value float64) *float64 {
	if math.IsNaN(value) {
		return nil
	}
	return &value
}

type keysPage struct {
	Name   string   `json:"name"`
	Prefix string   `json:"prefix"`
	Keys   []string `json:"keys"`
	// Count is the number of keys with the prefix. Next is the key after which the next page begins, empty on the last
	// page.
	Count int    `json:"count"`
	Next  string `json:"next,omitempty"`

	HideObjects bool `json:"-"`
}

func (q request) keys(e *entry, prefix, after string) {
	objects, isKnown := e.snapshot()
	if !isKnown {
		q.fail(http.StatusNotFound, "the store of this cache was not added")
		return
	}
	p := keysPage{Name: e.name, Prefix: prefix, HideObjects: q.registry.HideObjects}
	p.Keys, p.Count = keysOf(objects, prefix, after, keysOnPage+1)
	if len(p.Keys) > keysOnPage {
		p.Keys = p.Keys[:keysOnPage]
		p.Next = p.Keys[keysOnPage-1]
	}
	if q.wantsJSON() {
		q.json(http.StatusOK, p)
		return
	}
	q.page(http.StatusOK, "keys", p)
}

type objectPage struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// AppliedVersion is the store's.
	AppliedVersion string `json:"appliedVersion"`
	// Object is empty if the only state is quarantined.
	Object json.RawMessage `json:"object,omitempty"`
	// Quarantined is the newest state, if it is quarantined; Object is an earlier one then.
	Quarantined *cache.Quarantined `json:"quarantined,omitempty"`

	Text string `json:"-"`
}

func (q request) object(e *entry, key string) {
	objects, isKnown := e.snapshot()
	switch {
	case q.registry.HideObjects:
		q.fail(http.StatusForbidden, "objects are not shown here")
		return
	case !isKnown:
		q.fail(http.StatusNotFound, "the store of this cache was not added")
		return
	}
	p := objectPage{Name: e.name, Key: key, AppliedVersion: objects.ResourceVersion(), Quarantined: e.quarantined(objects, key)}
	object, exists := objects.Lookup(key)
	if !exists && p.Quarantined == nil {
		q.fail(http.StatusNotFound, "there is no object under this key")
		return
	}
	if exists {
		text, err := objectJSON(object, q.registry.Redact)
		if err != nil {
			q.fail(http.StatusInternalServerError, err.Error())
			return
		}
		p.Object = text
		p.Text = string(text)
	}
	if q.wantsJSON() {
		q.json(http.StatusOK, p)
		return
	}
	q.page(http.StatusOK, "object", p)
}

// quarantined returns the quarantined state of a key, nil if there is none.
func (e *entry) quarantined(objects cache.Reader[any], key string) *cache.Quarantined {
	for _, one := range e.reporter.Status().Quarantined {
		if one.Key == key {
			return &one
		}
	}
	var object *cache.ObjectError
	_, err := objects.Get(key)
	if !errors.As(err, &object) {
		return nil
	}
	return &cache.Quarantined{Key: key, ResourceVersion: object.ResourceVersion, Stage: object.Stage, Err: object.Err}
}
