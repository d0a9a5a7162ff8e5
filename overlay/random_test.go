package overlay_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/overlay"
)

// moment is the server's state of a name from a version on; obj is nil after a deletion.
type moment struct {
	version int
	obj     *object
}

// script is a random run of own and foreign writes, with the server's history as model.
type script struct {
	*rig
	*rand.Rand
	history map[string][]moment
	// newest is the version of the newest observed write of a name.
	newest map[string]int
	// results has the results of own writes that have not been observed yet.
	results []func()
	steps   []string
	// opaque: versions are not numbers. Then results are not late, and the watch delivers each
	// state.
	opaque bool
	// foreign has the versions of foreign writes, foreignMade the version of each name's last
	// foreign creation.
	foreign     []int
	foreignMade map[string]int
}

// show returns a version as the store and call results have it.
func (s *script) show(version string) string {
	if s.opaque {
		return "v" + version
	}
	return version
}

func (s *script) observe(obj *object) {
	obj = obj.DeepCopy()
	obj.SetResourceVersion(s.show(obj.GetResourceVersion()))
	s.observed(obj)
}

func versionOf(obj *object) int {
	version, _ := strconv.Atoi(obj.GetResourceVersion())
	return version
}

// at returns the version of a name at a version of the server, "" if it did not exist.
func (s *script) at(name string, version int) (found string) {
	for _, m := range s.history[name] {
		if m.version > version {
			break
		}
		if found = ""; m.obj != nil {
			found = m.obj.GetResourceVersion()
		}
	}
	return found
}

func (s *script) note(format string, args ...any) {
	s.steps = append(s.steps, fmt.Sprintf(format, args...))
}

func (s *script) applied() int {
	applied, err := strconv.Atoi(s.items.ResourceVersion())
	require.NoError(s.t, err)
	return applied
}

// change makes one change at the server; observe is called when its result has arrived.
func (s *script) change(name string, own bool) {
	owner := strconv.Itoa(s.IntN(3))
	stored, err := s.Get("shop", name)
	var m moment
	var observe func()
	// If versions are not ordered, an object that was created and deleted unseen before an own
	// write cannot be recognized as older.
	own = own && (!s.opaque || s.foreignMade[name] <= s.applied())
	switch {
	case err != nil:
		m.obj = s.create(name, owner)
		m.version = versionOf(m.obj)
		observe = func() { s.observe(m.obj) }
		if !own {
			s.foreignMade[name] = m.version
		}
	case s.IntN(3) > 0:
		m.obj = s.update(name, owner)
		m.version = versionOf(m.obj)
		observe = func() { s.observe(m.obj) }
	default:
		uid := stored.(*object).GetUID()
		// A caller deletes the object that it sees.
		seen, exists := s.overlay.Lookup("shop/" + name)
		own = own && exists && seen.GetUID() == uid
		m.version = versionOf(s.delete(name))
		observe = func() { s.overlay.ObservedDelete("shop/"+name, uid) }
	}
	s.history[name] = append(s.history[name], m)
	s.note("version %d is of %s, exists %t, own %t", m.version, name, m.obj != nil, own)
	if !own {
		s.foreign = append(s.foreign, m.version)
	}
	if own {
		s.results = append(s.results, func() {
			s.note("answer %d", m.version)
			s.newest[name] = max(s.newest[name], m.version)
			observe()
		})
	}
}

// observeResult observes the result of one of the own writes, in any order.
func (s *script) observeResult() {
	if len(s.results) > 0 {
		at := s.IntN(len(s.results))
		answer := s.results[at]
		s.results = append(s.results[:at], s.results[at+1:]...)
		answer()
	}
}

func (s *script) step() {
	switch choice := s.IntN(40); {
	case choice < 12:
		s.change(strconv.Itoa(s.IntN(4)), true)
		if s.opaque || s.IntN(2) == 0 {
			s.observeResult()
		}
	case choice < 22:
		s.change(strconv.Itoa(s.IntN(4)), false)
	case choice < 28:
		s.observeResult()
	case choice < 30:
		s.note("delay")
		s.DelayEvents(time.Duration(1+s.IntN(300)) * time.Millisecond)
	case choice == 30:
		s.note("cut")
		s.CloseWatches()
	case choice == 31 && !s.opaque:
		s.note("relist")
		s.CompactAll()
		s.CloseWatches()
	case choice == 32:
		s.note("bookmarks")
		s.SendBookmarks()
	default:
		time.Sleep(time.Duration(s.IntN(500)) * time.Millisecond)
	}
}

// check compares the shown objects with the newest of the store's state and the observed writes.
func (s *script) check() {
	s.t.Helper()
	synctest.Wait()
	applied := s.applied()
	want := map[string]string{}
	for name := range s.history {
		if version := s.at(name, max(applied, s.newest[name])); version != "" {
			want[name] = s.show(version)
		}
	}
	s.note("applied %d, shown %v", applied, want)
	if got := versions(s.overlay.Reader); !assert.ObjectsAreEqual(want, got) {
		s.t.Fatalf("shown %v, want %v, after:\n%v", got, want, s.steps)
	}
	s.assertShows(want)
}

func TestTheOverlayShowsTheNewestOfStoreAndObservedWritesInRandomScripts(t *testing.T) {
	inRandomScripts(t, nil, func(t *testing.T, s *script) {
		s.run()
	})
}

// In addition, a handler is notified of all foreign writes, and of no others.
func TestTheOverlayShowsTheNewestInRandomScriptsWhoseVersionsAreNoNumbers(t *testing.T) {
	transform := func(obj *object) (*object, error) {
		obj.SetResourceVersion("v" + obj.GetResourceVersion())
		return obj, nil
	}
	inRandomScripts(t, transform, func(t *testing.T, s *script) {
		var handler calls
		_, err := s.items.AddHandler(s.overlay.Handler(&handler))
		require.NoError(t, err)
		s.opaque = true
		s.DelayEvents(time.Millisecond)
		s.run()
		var want, got []int
		want = append(want, s.foreign...)
		for _, call := range handler.take() {
			at := strings.LastIndex(call, " ")
			version, err := strconv.Atoi(strings.TrimPrefix(call[at+1:], "v"))
			require.NoError(t, err)
			got = append(got, version)
		}
		require.Equal(t, want, got, "after:\n%v", s.steps)
	})
}

func inRandomScripts(
	t *testing.T, transform func(*object) (*object, error), test func(t *testing.T, s *script),
) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubbleWith(
				t,
				transform,
				func(o *overlay.Options[*object]) { o.MaxAge = 24 * time.Hour },
				func(t *testing.T, r *rig) {
					test(
						t,
						&script{
							rig:         r,
							Rand:        rand.New(rand.NewPCG(seed, 1)),
							history:     map[string][]moment{},
							newest:      map[string]int{},
							foreignMade: map[string]int{},
						},
					)
				},
			)
		})
	}
}

// run makes 150 steps, and waits until everything is delivered.
func (s *script) run() {
	for range 150 {
		s.step()
		s.check()
	}
	for len(s.results) > 0 {
		s.observeResult()
		s.check()
	}
	s.Heal()
	s.DelayEvents(0)
	time.Sleep(2 * time.Minute)
	s.check()
	got := versions(s.overlay.Reader)
	require.Len(s.t, got, len(s.Objects()), "the overlay equals the server")
	for _, obj := range s.Objects() {
		require.Equal(s.t, s.show(obj.(*object).GetResourceVersion()), got[obj.(*object).GetName()])
	}
	require.Zero(s.t, s.overlay.Pending())
	require.Empty(s.t, s.expired())
}
