package cache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// Sources that do what no source should: they panic, answer with hollow objects,
// and go on being wrong.

// scripted is a source made of functions; without a list it answers an empty one
// at version 5.
type scripted struct {
	list  func(metav1.ListOptions) (apiruntime.Object, error)
	watch func(ctx context.Context, n int) (watch.Interface, error)
	calls int
}

func (s *scripted) List(o metav1.ListOptions) (apiruntime.Object, error) {
	if s.list == nil {
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: "5"},
		}, nil
	}
	return s.list(o)
}

func (s *scripted) Watch(metav1.ListOptions) (watch.Interface, error) { panic("has a context") }

func (s *scripted) WatchWithContext(
	ctx context.Context, _ metav1.ListOptions,
) (watch.Interface, error) {
	s.calls++
	return s.watch(ctx, s.calls)
}

// FuzzWatchEvents takes the events of a watch, good and bad ones, and compares the store,
// its version and the quarantine with maps. A bad object is reported, delays no
// other object and moves the version; what regresses ends the watch and changes
// nothing.
//
// An event is two bytes. Of the first one the lower three bits say what it is:
//
//	0     an object that can be applied
//	1     one that no index takes
//	2     one that could not be decoded, with its name
//	3     the same without a name
//	4     one of another type
//	5     nothing at all
//	6     a bookmark
//	7     an object in an event of a type that there is not
//
// The next two bits are the event's type: Added, Modified, Deleted, Modified; the rest is the
// key. The second byte is the version, from the last one on: 4 is the same, 0 is four
// less; 255 is none.
func FuzzWatchEvents(f *testing.F) {
	f.Add([]byte{0x00, 5, 0x08, 6, 0x10, 7, 0x21, 5, 0x2a, 5, 0x32, 6, 0x13, 9, 0x06, 5})
	f.Add([]byte{
		0x00, 5, 0x01, 5, 0x00, 255, 0x04, 9, 0x14, 5, 0x05, 4, 0x15, 4, 0x07, 8, 0x20, 3, 0x00,
		0,
	})
	f.Add([]byte{0x40, 5, 0x52, 5, 0x42, 255, 0x40, 5, 0x06, 3})
	var recorded eventTrace
	recorded.event(0, watch.Added, 3, 1)
	recorded.event(2, watch.Modified, 3, 1)
	recorded.event(6, watch.Bookmark, 0, 7)
	recorded.event(0, watch.Deleted, 3, 2)
	f.Add([]byte(recorded))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 200 {
			return
		}
		m := newEventsModel(t)
		for len(script) > 1 && m.take(script[0], script[1]) {
			m.check()
			script = script[2:]
		}
		m.check()
	})
}

// eventTrace is a script of FuzzWatchEvents that is made of what a watch has sent.
type eventTrace []byte

// event is one: what it is, as FuzzWatchEvents says, of which of eight keys, and by how much
// it moves the version on.
func (e *eventTrace) event(what byte, kind watch.EventType, key, ahead int) {
	bits := map[watch.EventType]byte{watch.Modified: 1, watch.Deleted: 2}[kind]
	*e = append(*e, what|bits<<3|byte(key%8)<<5, byte(min(ahead, 200)+4))
}

// eventsModel is a reflector's run, of which only the watch runs, and its store.
type eventsModel struct {
	*testing.T
	run     *run
	watch   *openWatch
	store   *cache
	reports []error

	version int
	content map[string]string
	held    map[string]bool
	// namelessDeletion is the key of the one entry for deletions without a name.
	namelessDeletion string
	// refusedAt are the versions of the states that the store has refused, 0 for none.
	refusedAt map[string]int
}

func newEventsModel(t *testing.T) *eventsModel {
	now := time.Now()
	m := &eventsModel{
		T:     t,
		store: newTagStore(),
		watch: &openWatch{
			version:    "10",
			answeredAt: now,
			expires:    now.Add(time.Hour),
			timer:      clock.RealClock{}.NewTimer(time.Hour),
		},
		version:   10,
		content:   map[string]string{"a/0": "3", "a/1": ""},
		held:      map[string]bool{},
		refusedAt: map[string]int{},
	}
	r := NewReflectorWithOptions(&scripted{}, &object{}, m.store, ReflectorOptions{
		ErrorHandler: func(_ context.Context, _ *Reflector, err error) {
			m.reports = append(m.reports, err)
		},
	})
	m.run = newRun(r, false)
	m.run.ctx = bg
	m.run.applying = applyContext{ctx: bg}
	m.watch.run = m.run
	m.watch.reflector = r
	m.watch.progress = &r.progress
	require.NoError(t, m.store.Replace([]any{podAt("a", "0", "3"), podAt("a", "1", "")}, "10"))
	r.setAccepted("10", "list")
	return m
}

// take has the run handle an event; false if that has ended the watch.
func (m *eventsModel) take(what, ahead byte) bool {
	e := watch.Event{
		Type: []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Modified}[what>>3&3],
	}
	number := m.version + int(ahead) - 4
	version := itoa(number)
	if ahead == 255 || number <= 0 {
		version = ""
		number = 0
	}
	key := itoa(int(what >> 5))
	obj := podAt("a", key, version)
	key = nameOf(obj)
	reports := len(m.reports)
	have := m.refusedAt[key] // which was received last, if it has a version
	if have == 0 && m.content[key] != "" {
		have = versionOf(podAt("", "", m.content[key]))
	}
	refused := true
	regresses := number > 0 && number < have
	switch what & 7 {
	case 0:
		e.Object = obj
		refused = false
	case 1:
		e.Object = tagged(obj, "bad")
		refused = e.Type != watch.Deleted
	case 2:
		e.Object = undecoded(obj)
		regresses = regresses && e.Type == watch.Deleted
	case 3:
		obj.Name = ""
		e.Object = undecoded(obj)
		regresses = false
	case 4:
		e.Object = &machine{ObjectMeta: obj.ObjectMeta}
		regresses = false
	case 5:
		number = 0
		regresses = false
	case 6:
		e.Type = watch.Bookmark
		e.Object = obj
		refused = false
		regresses = number > 0 && number < m.version
	case 7:
		e.Type = "OTHER"
		e.Object = obj
		regresses = false
	}
	err := m.watch.applyBatch(e)
	if regresses {
		var regression *VersionRegressionError
		require.ErrorAs(m, err, &regression)
		return false
	}
	require.NoError(m, err)
	m.became(what&7, e, key, version)
	switch {
	case what&7 == 1 && e.Type != watch.Deleted:
		m.refusedAt[key] = number
	case what&7 <= 2 && (e.Type == watch.Deleted || what&7 == 0):
		delete(m.refusedAt, key)
	}
	if number > m.version {
		m.version = number
		require.Len(m, m.reports, reports+map[bool]int{true: 1}[refused], "%v", m.reports)
	}
	return true
}

// became is what an event should do to content and quarantine.
func (m *eventsModel) became(what byte, e watch.Event, key, version string) {
	deleted := e.Type == watch.Deleted
	switch {
	case what == 6 || what == 3 && !deleted || what == 5 && !deleted:
	case what == 3 && version != "":
		m.holdNamelessDeletion("watch event at version " + version)
	case what == 3 || what == 5:
		m.holdNamelessDeletion("watch event")
	case what >= 4:
		m.held[key] = true
	case deleted:
		delete(m.content, key)
		delete(m.held, key)
	case what == 0:
		m.content[key] = version
		delete(m.held, key)
	default:
		m.held[key] = true
	}
}

// holdNamelessDeletion replaces the last such entry: all deletions without a name share one.
func (m *eventsModel) holdNamelessDeletion(entry string) {
	delete(m.held, m.namelessDeletion)
	m.namelessDeletion = entry
	m.held[entry] = true
}

func (m *eventsModel) check() {
	require.Equal(m, m.content, contents(m.store))
	require.Equal(m, itoa(m.version), m.store.LastStoreSyncResourceVersion())
	require.Equal(m, itoa(m.version), m.run.reflector.LastSyncResourceVersion())
	var held []string
	for _, q := range m.run.reflector.Status().Quarantined {
		held = append(held, q.Key)
		require.True(m, slices.ContainsFunc(m.reports, func(err error) bool {
			object, bad := errors.AsType[*ObjectError](err)
			return bad && object.Key == q.Key && object.ResourceVersion == q.ResourceVersion &&
				object.Stage == q.Stage
		}), "%v is quarantined and was not reported", q)
	}
	slices.Sort(held)
	require.Equal(m, slices.Sorted(maps.Keys(m.held)), held)
}
