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
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/watchmirror/cache"
)

// Handler returns a handler that shows the registered caches. The page depends only on the query,
// so the handler can be mounted under any path:
//
//	                         all caches
//	?name=NAME               one cache
//	?name=NAME&prefix=PREFIX keys that begin with PREFIX
//	?name=NAME&part=PART     keys that contain PART
//	?name=NAME&key=KEY       one object
//	?name=NAME&memory        what the memory of its objects is spent on
//
// With format=json, or if the request accepts application/json and not text/html, the response is
// JSON. There is no authentication; see the package documentation.
func Handler(registry *Registry) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limitBody(w, r)
		request{registry, w, r}.serve()
	})
}

// bodyTimeout is how long a request's body, which is ignored, may take to arrive.
const bodyTimeout = 5 * time.Second

// limitBody limits the wait for a request's body. net/http reads the body before it sends a short response, and a
// server may have no timeout of its own. Other servers may not support the limit.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
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
		q.fail(http.StatusMethodNotAllowed, "Only GET and HEAD are answered")
		return
	}
	query, err := url.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		q.fail(http.StatusBadRequest, "The query cannot be parsed")
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
		q.failOn(http.StatusNotFound, errorPage{Text: "There is no cache of this name", Key: name})
	case query.Has("key"):
		q.object(e, query.Get("key"))
	case query.Has("memory"):
		q.memory(e)
	case query.Has("prefix"), query.Has("part"):
		filter := keyFilter{Prefix: query.Get("prefix"), Part: query.Get("part")}
		q.keys(e, filter, query.Get("after"))
	default:
		q.one(e)
	}
}

// fail responds with an error.
func (q request) fail(code int, text string) {
	q.failOn(code, errorPage{Text: text})
}

// failOn responds with an error about a cache or key.
func (q request) failOn(code int, failure errorPage) {
	if q.wantsJSON() {
		q.json(code, failure)
		return
	}
	q.page(code, "error", failure)
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

// escapeControls escapes the control characters that encoding/json leaves in strings: DEL and those
// of C1, which a terminal may interpret.
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
	content := page{Style: template.CSS(style), Content: data}
	if err := pages.ExecuteTemplate(&text, name, content); err != nil {
		http.Error(q.w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	every, err := strconv.Atoi(q.r.URL.Query().Get("refresh"))
	if err == nil && every > 0 && every <= 3600 {
		q.w.Header().Set("Refresh", strconv.Itoa(every))
	}
	q.answer(code, "text/html; charset=utf-8", bytes.Map(visible, text.Bytes()))
}

// visible replaces control characters, which names and error texts may contain and a terminal would
// interpret.
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
	s := newStatusOf(e.name, raw, now)
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
	Title   string
	Style   template.CSS
	Program program
}

// Top is called by the templates.
func (p page) Top(title string) top {
	return top{Title: title, Style: p.Style, Program: thisProgram()}
}

// errorPage names the cache, unless it is unknown, and the key, unless there is none.
type errorPage struct {
	Text string `json:"error"`
	Name string `json:"name,omitempty"`
	Key  string `json:"key,omitempty"`
}

type overviewRow struct {
	statusOf
	Events plot `json:"-"`
}

type overviewPage struct {
	Time    time.Time `json:"time"`
	Program program   `json:"program"`
	// WithProblem is the number of caches with a problem. They are the first.
	WithProblem int           `json:"withProblem"`
	Caches      []overviewRow `json:"caches"`
}

func (q request) overview() {
	p := overviewPage{Time: time.Now().UTC(), Program: thisProgram(), Caches: []overviewRow{}}
	for _, e := range q.registry.all() {
		s := q.status(e)
		samples, _ := e.past()
		events := newPlot("Events per second", eventRate(samples), formatNumber, "")
		p.Caches = append(p.Caches, overviewRow{statusOf: s, Events: events})
		if s.HasProblem() {
			p.WithProblem++
		}
	}
	slices.SortStableFunc(p.Caches, func(a, b overviewRow) int {
		switch {
		case a.HasProblem() == b.HasProblem():
			return 0
		case a.HasProblem():
			return -1
		}
		return 1
	})
	if q.wantsJSON() {
		q.json(http.StatusOK, p)
		return
	}
	q.page(http.StatusOK, "overview", p)
}

// Summary is one line about all caches.
func (p overviewPage) Summary() string {
	count := len(p.Caches)
	switch {
	case p.WithProblem == 0:
		return counted(count, "cache", "caches") + ", none has a problem"
	case count == 1:
		return "The cache has a problem"
	}
	return fmt.Sprintf("%d of %d caches %s a problem", p.WithProblem, count, verb(p.WithProblem))
}

func verb(count int) string {
	if count == 1 {
		return "has"
	}
	return "have"
}

type onePage struct {
	statusOf
	History []change     `json:"history"`
	Samples []sampleJSON `json:"samples"`
	// Plots have a line, EmptyPlots a reason why there is none.
	Plots      []plot `json:"-"`
	EmptyPlots []plot `json:"-"`
	// HasObjects is true if the keys can be shown.
	HasObjects  bool `json:"-"`
	HideObjects bool `json:"-"`
}

// sampleJSON is a sample in which null means unknown.
type sampleJSON struct {
	Time      time.Time `json:"time"`
	Events    *float64  `json:"eventsPerSecond"`
	Staleness *float64  `json:"stalenessSeconds"`
	Backlog   *float64  `json:"backlog"`
}

func (q request) one(e *entry) {
	p := onePage{
		statusOf:    q.status(e),
		HasObjects:  e.objects != nil,
		HideObjects: q.registry.HideObjects,
	}
	samples, changes := e.past()
	p.History = changes
	events := eventRate(samples)
	if q.wantsJSON() {
		p.Samples = samplesJSON(samples, events)
		q.json(http.StatusOK, p)
		return
	}
	const noHandler = "no handler receives events"
	const noProof = "nothing has shown yet that the cache is current"
	for _, one := range []plot{
		newPlot("Events per second", events, formatNumber, noHandler),
		newPlot("Staleness", stalenessOf(samples), formatSeconds, noProof),
		newPlot("Backlog", backlogOf(samples), formatNumber, noHandler),
	} {
		if one.IsZero {
			one.Empty = "0 for " + strings.TrimSuffix(one.From, " ago")
		}
		if one.Empty != "" {
			p.EmptyPlots = append(p.EmptyPlots, one)
			continue
		}
		p.Plots = append(p.Plots, one)
	}
	q.page(http.StatusOK, "one", p)
}

func samplesJSON(samples []sample, events []point) []sampleJSON {
	encoded := []sampleJSON{}
	for i, event := range events {
		s := samples[i+1]
		encoded = append(encoded, sampleJSON{
			Time:      s.Time,
			Events:    known(event.value),
			Staleness: known(s.Staleness),
			Backlog:   known(s.Backlog),
		})
	}
	return encoded
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
	Part   string   `json:"part,omitempty"`
	Keys   []string `json:"keys"`
	// Count is the number of selected keys. Next is the key after which the next page begins, empty
	// on the last page.
	Count int    `json:"count"`
	Next  string `json:"next,omitempty"`
	// Quarantined are selected keys that are not among Keys, since their only state is quarantined.
	// Only the first page has them.
	Quarantined []string `json:"quarantined,omitempty"`

	HideObjects bool `json:"-"`
}

func (q request) keys(e *entry, filter keyFilter, after string) {
	objects, isKnown := e.snapshot()
	if !isKnown {
		q.failOn(http.StatusNotFound, errorPage{Text: noStore, Name: e.name})
		return
	}
	p := keysPage{
		Name:        e.name,
		Prefix:      filter.Prefix,
		Part:        filter.Part,
		HideObjects: q.registry.HideObjects,
	}
	p.Keys, p.Count = keysOf(objects, filter, after, keysOnPage+1)
	if len(p.Keys) > keysOnPage {
		p.Keys = p.Keys[:keysOnPage]
		p.Next = p.Keys[keysOnPage-1]
	}
	if after == "" {
		p.Quarantined = e.quarantinedKeys(objects, filter)
	}
	if q.wantsJSON() {
		q.json(http.StatusOK, p)
		return
	}
	q.page(http.StatusOK, "keys", p)
}

// quarantinedKeys returns the first selected keys whose only state is quarantined.
func (e *entry) quarantinedKeys(objects cache.Reader[any], filter keyFilter) []string {
	var keys []string
	for _, one := range e.reporter.Status().Quarantined {
		_, hasState := objects.Lookup(one.Key)
		if !hasState && one.Key != "" && filter.selects(one.Key) {
			keys = append(keys, one.Key)
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), keysOnPage)]
}

// noStore is the error for keys and objects of a reflector that was added without its store.
const noStore = "The store of this cache was not added: use AddWithStore"

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
	fail := func(code int, text string) {
		q.failOn(code, errorPage{Text: text, Name: e.name, Key: key})
	}
	if q.registry.HideObjects {
		fail(http.StatusForbidden, "Objects are not shown here")
		return
	}
	objects, isKnown := e.snapshot()
	if !isKnown {
		fail(http.StatusNotFound, noStore)
		return
	}
	p := objectPage{
		Name:           e.name,
		Key:            key,
		AppliedVersion: objects.ResourceVersion(),
		Quarantined:    e.quarantined(objects, key),
	}
	object, exists := objects.Lookup(key)
	if !exists && p.Quarantined == nil {
		fail(http.StatusNotFound, "There is no object under this key")
		return
	}
	if exists {
		text, err := objectJSON(object, q.registry.Redact)
		if err != nil {
			fail(http.StatusInternalServerError, err.Error())
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
	return &cache.Quarantined{
		Key:             key,
		ResourceVersion: object.ResourceVersion,
		Stage:           object.Stage,
		Err:             object.Err,
	}
}
