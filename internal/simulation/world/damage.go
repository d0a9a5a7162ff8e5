package world

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// Damage changes bytes of responses in the network (B24): of the next lists, frames of watches, or
// frames of streaming lists. The result is never valid JSON, because a valid one could not be
// noticed.
type Damage struct {
	mu   sync.Mutex
	next map[string]pendingDamage
	// done are the results. No result occurs twice: equal bytes twice count as the server's.
	done map[string]bool
	// serials are the states in which a byte was damaged.
	serials map[int]bool
	// last is the time of the last damage, broken the number of damaged responses.
	last   time.Time
	broken int
	// reachedCaller is true once a caller of Fresh or Verify may have received damage.
	reachedCaller atomic.Bool
	// noted is true once an undecodable object was written.
	noted bool
}

// pendingDamage is the remaining damage for one kind of response.
type pendingDamage struct {
	left int
	how  string
	at   int
}

// Kinds of responses.
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

// begin damages the next responses of a kind.
func (d *Damage) begin(answers string, s script.Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next == nil {
		d.next, d.done, d.serials = map[string]pendingDamage{}, map[string]bool{}, map[int]bool{}
	}
	how := s.What
	if how != script.DamagedCut && how != script.DamagedEnd {
		how = script.DamagedByte
	}
	d.next[answers] = pendingDamage{left: s.N, how: how, at: max(int(s.For), 0)}
}

// BeginOnWatches damages one byte of the next frames of watches, at an offset.
func (d *Damage) BeginOnWatches(frames, at int) {
	d.begin(watchAnswer, script.Step{N: frames, What: script.DamagedByte, For: time.Duration(at)})
}

// Heal cancels all pending damage.
func (d *Damage) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.next)
}

// apply returns a response or frame with pending damage applied, and the kind of damage, "" if
// none.
func (d *Damage) apply(answers string, p []byte) (damaged []byte, how string) {
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
	if next.how != script.DamagedByte {
		if damaged = p[:at]; at > 0 && !json.Valid(damaged) {
			d.broken++
		}
		return damaged, next.how
	}
	damaged, at = d.change(p, at)
	serial := serialAround(p, at)
	if answers == listAnswer && d.serials[serial] {
		return p, "" // an item that is damaged twice stays quarantined until its next change
	}
	d.broken++
	d.serials[serial] = true
	return damaged, next.how
}

// change changes the first byte at or after from for which the result is invalid JSON and new.
func (d *Damage) change(p []byte, from int) (changed []byte, at int) {
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

// serialAround returns the serial of the object that contains an offset, 0 if there is none.
func serialAround(p []byte, at int) int {
	begin := []byte(`{"kind":"`) // in lists of metadata, objects have another kind than in watches
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

// WasDamaged says whether a byte of a state has ever been damaged.
func (d *Damage) WasDamaged(serial int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.serials[serial]
}

// DamagedRecently says whether anything was damaged, or may be mistaken for damaged, in the last
// minutes.
func (d *Damage) DamagedRecently() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.noted || !d.last.IsZero() && time.Since(d.last) < 3*time.Minute
}

// DamagedSince says whether anything has been damaged since a time.
func (d *Damage) DamagedSince(began time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.last.IsZero() && !d.last.Before(began)
}

// noteUndecodable records that an undecodable object may be sent, which each mirror requests once
// more, at some time.
func (d *Damage) noteUndecodable() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = true
}

// ReachCaller notes that a caller of Fresh or Verify may have received damage.
func (d *Damage) ReachCaller() { d.reachedCaller.Store(true) }

// HasReachedCaller says whether ReachCaller was called.
func (d *Damage) HasReachedCaller() bool { return d.reachedCaller.Load() }

// Count returns the number of damaged responses, and the time of the last one.
func (d *Damage) Count() (broken int, last time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken, d.last
}

// damaging makes objects with a decodeMark undecodable, and damages the bytes of responses.
func (w *World) damaging(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&damagedAnswer{ResponseWriter: rw, world: w, kind: kindOfAnswer(r)}, r)
	})
}

// damagedAnswer damages the bytes of a response. A server writes each list and each frame of a
// watch in one call.
type damagedAnswer struct {
	http.ResponseWriter
	world *World
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
	p = damageLabel(p)
	if a.code != http.StatusOK {
		return a.ResponseWriter.Write(p)
	}
	damaged, how := a.world.Damage.apply(a.kind, p)
	if how != "" {
		a.world.Note("a %s is damaged (%s): %q", a.kind, how, damaged)
	}
	n, err := a.ResponseWriter.Write(damaged)
	switch how {
	case script.DamagedCut:
		a.Flush()
		panic(http.ErrAbortHandler)
	case script.DamagedEnd:
		return n, http.ErrAbortHandler // the handler returns
	}
	return n, err
}
