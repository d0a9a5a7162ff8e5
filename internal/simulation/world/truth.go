package world

import (
	"math"
	"slices"
	"sync"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// Truth is the model: all states of the source over its life. Moments count its changes and, unlike
// versions, never regress.
type Truth struct {
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
	states []State
	// hidden is true once a deletion was hidden from all watches, or a watch lost an event: from
	// then on the key may be older in a mirror than other keys.
	hidden bool
}

// State is the state of a key from its moment to that of the next state.
type State struct {
	Moment   int
	Serial   int // 0 if absent
	Version  uint64
	Bad      string
	Unwanted bool
	// incarnation numbers the objects of a key over time, which have different UIDs.
	incarnation int
	// Groups are the values of the index.
	Groups string
}

type reached struct {
	version uint64
	moment  int
}

// Present says whether there is an object.
func (s State) Present() bool { return s.Serial != 0 }

// Shown says whether a mirror shows the state as it is.
func (s State) Shown() bool { return s.Present() && s.Bad == "" && !s.Unwanted }

// WasUnwanted says whether a transform has ever dropped a key.
func (t *Truth) WasUnwanted(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	life := t.keys[key]
	return life != nil && slices.ContainsFunc(life.states, func(s State) bool { return s.Unwanted })
}

func newTruth() *Truth { return &Truth{keys: map[string]*life{}} }

// tick begins a new moment, in which the source reaches version.
func (t *Truth) tick(version uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moment++
	t.versions = append(t.versions, reached{version, t.moment})
	return t.moment
}

// Present is the moment at present.
func (t *Truth) Present() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.moment
}

// add adds a state of key.
func (t *Truth) add(key string, s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.keys[key]
	if l == nil {
		l = &life{}
		t.keys[key] = l
	}
	l.states = append(l.states, s)
	if !s.Present() || s.Bad == script.BadKey {
		t.removal = s.Version
	}
}

// lastRemoval is the version of the last state without which a list deletes the key: a deletion, or
// an object whose key cannot be read.
func (t *Truth) lastRemoval() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removal
}

func (t *Truth) hide(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.keys[key]; l != nil {
		l.hidden = true
	}
}

// IsHidden says whether a change of the key was hidden from any watch.
func (t *Truth) IsHidden(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[key] != nil && t.keys[key].hidden
}

// Now returns the last state of each key.
func (t *Truth) Now() map[string]State {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := make(map[string]State, len(t.keys))
	for key, l := range t.keys {
		now[key] = l.states[len(l.states)-1]
	}
	return now
}

// at returns the state of a key at a moment.
func (t *Truth) at(key string, moment int) State {
	t.mu.Lock()
	defer t.mu.Unlock()
	var at State
	if l := t.keys[key]; l != nil {
		for _, s := range l.states {
			if s.Moment > moment {
				break
			}
			at = s
		}
	}
	return at
}

// Find returns the first position at or after from whose state fits, -1 if none does. Position 0
// is the absence before the first state.
func (t *Truth) Find(key string, from int, fits func(State) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from == 0 && fits(State{}) {
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

// Since returns the earliest moment at which the source was at version, or at the nearest one
// below; 0 if it never was.
func (t *Truth) Since(version uint64) int {
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

// Latest returns the last moment at which the source was at version or below it.
func (t *Truth) Latest(version uint64) int {
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
type span struct{ From, to int }

// SpansFrom returns all moments from one on.
func SpansFrom(moment int) []span { return []span{{moment, math.MaxInt}} }

// Spans returns the moments at which the state of a key fits, all for a hidden key.
func (t *Truth) Spans(key string, fits func(State) bool) []span {
	if t.IsHidden(key) {
		return SpansFrom(0)
	}
	return t.AllSpans(key, fits)
}

// AllSpans returns the spans of any key.
func (t *Truth) AllSpans(key string, fits func(State) bool) []span {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.keys[key]
	if l == nil {
		return SpansFrom(0)
	}
	var spans []span
	add := func(s State, from, to int) {
		if !fits(s) {
			return
		}
		if n := len(spans); n > 0 && spans[n-1].to == from {
			spans[n-1].to = to
			return
		}
		spans = append(spans, span{from, to})
	}
	add(State{}, 0, l.states[0].Moment)
	for i, s := range l.states {
		end := math.MaxInt
		if i+1 < len(l.states) {
			end = l.states[i+1].Moment
		}
		add(s, s.Moment, end)
	}
	return spans
}

// Intersect returns the intersection of two sorted lists of spans.
func Intersect(a, b []span) []span {
	var common []span
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.From, y.From), min(x.to, y.to); from < to {
				common = append(common, span{from, to})
			}
		}
	}
	return slices.Clip(common)
}
