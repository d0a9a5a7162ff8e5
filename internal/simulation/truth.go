package simulation

import (
	"math"
	"slices"
	"sync"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// truth is the model: all states of the source over its life. Moments count its changes and, unlike
// versions, never regress.
type truth struct {
	mu     sync.Mutex
	moment int
	keys   map[string]*life
	// removal is the version of the last deletion.
	removal uint64
	// versions are the moments at which the source reached a version, oldest first.
	versions []reached
}

// life has the states of one key. Before the first one it was absent.
type life struct {
	states []state
	// hidden is true once a deletion was hidden from all watches, or a watch lost an event: from then on the key may
	// be older in a mirror than other keys.
	hidden bool
}

// state is the state of a key from its moment to that of the next state.
type state struct {
	moment   int
	serial   int // 0 if absent
	version  uint64
	bad      string
	unwanted bool
	// incarnation numbers the objects of a key over time, which have different UIDs.
	incarnation int
	// groups are the values of the index.
	groups string
}

type reached struct {
	version uint64
	moment  int
}

func (s state) present() bool { return s.serial != 0 }

// shown says whether a mirror shows the state as it is.
func (s state) shown() bool { return s.present() && s.bad == "" && !s.unwanted }

// wasUnwanted says whether a transform has ever dropped a key.
func (t *truth) wasUnwanted(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	life := t.keys[key]
	return life != nil && slices.ContainsFunc(life.states, func(s state) bool { return s.unwanted })
}

func newTruth() *truth { return &truth{keys: map[string]*life{}} }

// tick begins a new moment, in which the source reaches version.
func (t *truth) tick(version uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moment++
	t.versions = append(t.versions, reached{version, t.moment})
	return t.moment
}

// present is the moment at present.
func (t *truth) present() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.moment
}

// add adds a state of key.
func (t *truth) add(key string, s state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.keys[key]
	if l == nil {
		l = &life{}
		t.keys[key] = l
	}
	l.states = append(l.states, s)
	if !s.present() || s.bad == script.BadKey {
		t.removal = s.version
	}
}

// lastRemoval is the version of the last state without which a list deletes the key: a deletion, or
// an object whose key cannot be read.
func (t *truth) lastRemoval() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removal
}

func (t *truth) hide(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.keys[key]; l != nil {
		l.hidden = true
	}
}

func (t *truth) isHidden(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[key] != nil && t.keys[key].hidden
}

// now returns the last state of each key.
func (t *truth) now() map[string]state {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := make(map[string]state, len(t.keys))
	for key, l := range t.keys {
		now[key] = l.states[len(l.states)-1]
	}
	return now
}

// at returns the state of a key at a moment.
func (t *truth) at(key string, moment int) state {
	t.mu.Lock()
	defer t.mu.Unlock()
	var at state
	if l := t.keys[key]; l != nil {
		for _, s := range l.states {
			if s.moment > moment {
				break
			}
			at = s
		}
	}
	return at
}

// find returns the first position at or after from whose state fits, -1 if none does. Position 0
// is the absence before the first state.
func (t *truth) find(key string, from int, fits func(state) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from == 0 && fits(state{}) {
		return 0
	}
	l := t.keys[key]
	if l == nil {
		return -1
	}
	for i := max(from, 1); i <= len(l.states); i++ {
		if fits(l.states[i-1]) {
			return i
		}
	}
	return -1
}

// since returns the earliest moment at which the source was at version, or at the nearest one
// below; 0 if it never was.
func (t *truth) since(version uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, best := 0, uint64(0)
	for _, r := range t.versions {
		if r.version <= version && (first == 0 || r.version > best) {
			first, best = r.moment, r.version
		}
	}
	return first
}

// latest returns the last moment at which the source was at version or below it.
func (t *truth) latest(version uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range slices.Backward(t.versions) {
		if r.version <= version {
			return r.moment
		}
	}
	return 0
}

// span is a half-open range of moments.
type span struct{ from, to int }

// spansFrom returns all moments from one on.
func spansFrom(moment int) []span { return []span{{moment, math.MaxInt}} }

// spans returns the moments at which the state of a key fits, all for a hidden key.
func (t *truth) spans(key string, fits func(state) bool) []span {
	if t.isHidden(key) {
		return spansFrom(0)
	}
	return t.allSpans(key, fits)
}

// allSpans returns the spans of any key.
func (t *truth) allSpans(key string, fits func(state) bool) []span {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.keys[key]
	if l == nil {
		return spansFrom(0)
	}
	var spans []span
	add := func(s state, from, to int) {
		if !fits(s) {
			return
		}
		if n := len(spans); n > 0 && spans[n-1].to == from {
			spans[n-1].to = to
			return
		}
		spans = append(spans, span{from, to})
	}
	add(state{}, 0, l.states[0].moment)
	for i, s := range l.states {
		end := math.MaxInt
		if i+1 < len(l.states) {
			end = l.states[i+1].moment
		}
		add(s, s.moment, end)
	}
	return spans
}

// intersect returns the intersection of two sorted lists of spans.
func intersect(a, b []span) []span {
	var common []span
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.from, y.from), min(x.to, y.to); from < to {
				common = append(common, span{from, to})
			}
		}
	}
	return slices.Clip(common)
}
