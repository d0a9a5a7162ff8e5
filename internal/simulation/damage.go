package simulation

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// damage is what the network does to the bytes of answers (B24): to those of the next lists,
// of the next frames of watches, or of the next frames of streaming lists. What it makes of them
// is no JSON any more: what still is might have been sent, and nobody can notice it.
type damage struct {
	mu   sync.Mutex
	next map[string]damaging
	// done are the results, as the same bytes twice are what the server means.
	done map[string]bool
	// serials are the states in which a byte was damaged.
	serials map[int]bool
	// last is when anything was damaged, broken how many answers were no JSON any more.
	last   time.Time
	broken int
	// metCaller is true once a caller of Fresh or Verify may have met it.
	metCaller atomic.Bool
	// noted is true once an object was written that cannot be decoded.
	noted bool
}

// damaging is the damage that is still due for a kind of answer.
type damaging struct {
	left int
	how  string
	at   int
}

// How an answer is damaged.
const (
	damagedByte = "byte" // one byte is another
	damagedCut  = "cut"  // the connection is cut in its middle
	damagedEnd  = "end"  // it ends in its middle, in good order
)

// The kinds of answers.
const (
	listAnswer   = "list"
	watchAnswer  = "watch"
	streamAnswer = "stream"
)

func kindOfAnswer(r *http.Request) string {
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		return streamAnswer
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return watchAnswer
	}
	return listAnswer
}

// begin damages the next answers of a kind.
func (d *damage) begin(answers string, s Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next == nil {
		d.next, d.done, d.serials = map[string]damaging{}, map[string]bool{}, map[int]bool{}
	}
	how := s.What
	if how != damagedCut && how != damagedEnd {
		how = damagedByte
	}
	d.next[answers] = damaging{left: s.N, how: how, at: max(int(s.For), 0)}
}

// heal ends all damage that has not been done.
func (d *damage) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.next)
}

// strike is what becomes of an answer or frame, and how it was damaged, "" if it was not.
func (d *damage) strike(answers string, p []byte) (damaged []byte, how string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.next[answers]
	if next.left <= 0 || len(p) == 0 {
		return p, ""
	}
	at := next.at % len(p)
	next.left, next.at = next.left-1, next.at+37 // another place
	d.next[answers] = next
	d.last = time.Now()
	if next.how != damagedByte {
		if damaged = p[:at]; at > 0 && !json.Valid(damaged) {
			d.broken++
		}
		return damaged, next.how
	}
	damaged, at = d.change(p, at)
	serial := serialAround(p, at)
	if answers == listAnswer && d.serials[serial] {
		return p, "" // an item that is damaged twice stays quarantined until it is next written
	}
	d.broken++
	d.serials[serial] = true
	return damaged, next.how
}

// change changes the first byte, from a place on, that makes p no JSON, nor what was sent before.
func (d *damage) change(p []byte, from int) (changed []byte, at int) {
	const others = "\" x}{,\x00]\\\n:"
	for i := range p {
		at = (from + i) % len(p)
		changed = bytes.Clone(p)
		changed[at] = others[from%len(others)]
		if changed[at] != p[at] && !json.Valid(changed) && !d.done[string(changed)] {
			break
		}
	}
	d.done[string(changed)] = true
	return changed, at
}

var serialPattern = regexp.MustCompile(`"` + serialMark + `":"(\d+)"`)

// serialAround is the serial of the object that a byte belongs to, 0 if there is none.
func serialAround(p []byte, at int) int {
	begin := []byte(`{"kind":"` + objectKind.Kind + `"`)
	from := max(bytes.LastIndex(p[:min(at+len(begin), len(p))], begin), 0)
	object := p[from:]
	if next := bytes.Index(object[1:], begin); next >= 0 {
		object = object[:1+next]
	}
	found := serialPattern.FindSubmatch(object)
	if found == nil {
		return 0
	}
	serial, _ := strconv.Atoi(string(found[1]))
	return serial
}

// hasStruck says whether a byte of a state has ever been damaged.
func (d *damage) hasStruck(serial int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.serials[serial]
}

// lately says whether anything has been damaged in the last minutes, or may be mistaken for damaged.
func (d *damage) lately() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.noted || !d.last.IsZero() && time.Since(d.last) < 3*time.Minute
}

// since says whether anything has been damaged since.
func (d *damage) since(began time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.last.IsZero() && !d.last.Before(began)
}

// note notes that something may be sent that mirrors take for damaged: each asks for it once more,
// whenever it gets to it.
func (d *damage) note() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = true
}

// count is how many answers were no JSON any more.
func (d *damage) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// damaging makes of a decodeMark something of the same length that is no label, and damages
// the bytes of answers.
func (w *world) damaging(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&damagedAnswer{ResponseWriter: rw, world: w, kind: kindOfAnswer(r)}, r)
	})
}

// damagedAnswer is an answer on its way through a network that damages it. A server writes each
// list, and each frame of a watch, in one piece.
type damagedAnswer struct {
	http.ResponseWriter
	world *world
	kind  string
	code  int
}

func (a *damagedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *damagedAnswer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *damagedAnswer) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (a *damagedAnswer) Write(p []byte) (int, error) {
	p = garble(p)
	if a.code != http.StatusOK {
		return a.ResponseWriter.Write(p)
	}
	damaged, how := a.world.damage.strike(a.kind, p)
	if how != "" {
		a.world.note("a %s is damaged (%s): %q", a.kind, how, damaged)
	}
	n, err := a.ResponseWriter.Write(damaged)
	switch how {
	case damagedCut:
		a.Flush()
		panic(http.ErrAbortHandler)
	case damagedEnd:
		return n, http.ErrAbortHandler // the handler returns
	}
	return n, err
}
