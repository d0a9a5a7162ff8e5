package sources_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/sources"
)

type textEntry = sources.Entry[string]

func decodeText(value []byte) (string, error) {
	switch string(value) {
	case "damaged":
		return "", errors.New("it is damaged")
	case "panic":
		panic("unexpected")
	}
	return string(value), nil
}

// shelf is a KeyValueStore in memory with its whole history.
type shelf struct {
	mu       sync.Mutex
	history  []revision // revision n is at n-1
	oldest   uint64     // the last removed revision
	wide     bool       // lists ignore the limit
	unknown  bool       // deletions have no last value
	progress time.Duration
	moved    chan struct{}
	watches  int
}

type revision []sources.KeyChange

func newShelf() *shelf { return &shelf{moved: make(chan struct{}), progress: time.Minute} }

// write makes the next revision from changes such as "a=1", or "a" for a deletion.
func (s *shelf) write(changes ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := uint64(len(s.history)) + 1
	present := s.stateAt(at - 1)
	var next revision
	for _, text := range changes {
		key, value, put := strings.Cut(text, "=")
		before, exists := present[key]
		c := sources.KeyChange{
			Type: watch.Modified,
			KeyValue: sources.KeyValue{
				Key:      key,
				Value:    []byte(value),
				Created:  before.Created,
				Revision: at,
			},
		}
		switch {
		case !put:
			c.Type = watch.Deleted
			c.Value = before.Value
			c.LastUnknown = s.unknown
		case !exists:
			c.Type = watch.Added
			c.Created = at
		}
		next = append(next, c)
	}
	s.history = append(s.history, next)
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

// stateAt returns the keys at a revision.
func (s *shelf) stateAt(at uint64) map[string]sources.KeyValue {
	state := map[string]sources.KeyValue{}
	for _, changes := range s.history[:at] {
		for _, c := range changes {
			if state[c.Key] = c.KeyValue; c.Type == watch.Deleted {
				delete(state, c.Key)
			}
		}
	}
	return state
}

func (s *shelf) compact() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest = uint64(len(s.history))
	return nil
}

func (s *shelf) List(
	_ context.Context, keys sources.KeyRange, take func(revision uint64, kv sources.KeyValue) error,
) (uint64, bool, error) {
	s.mu.Lock()
	at := uint64(len(s.history))
	if keys.Revision > at {
		s.mu.Unlock()
		return 0, false, sources.TooLarge(keys.Revision, at)
	}
	if keys.Revision > 0 && keys.Revision < s.oldest {
		s.mu.Unlock()
		return 0, false, sources.Expired(keys.Revision, s.oldest)
	}
	if keys.Revision > 0 {
		at = keys.Revision
	}
	var state []sources.KeyValue
	for key, kv := range s.stateAt(at) {
		if key > keys.After {
			state = append(state, kv)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(state, func(a, b sources.KeyValue) int { return strings.Compare(a.Key, b.Key) })
	for i, kv := range state {
		if keys.Limit > 0 && int64(i) == keys.Limit && !s.wide {
			return at, true, nil
		}
		if err := take(at, kv); err != nil {
			return at, false, err
		}
	}
	return at, false, nil
}

func (s *shelf) Watch(_ context.Context, after uint64) (sources.KeyWatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch present := uint64(len(s.history)); {
	case after > present:
		return nil, sources.TooLarge(after, present)
	case after < s.oldest:
		return nil, sources.Expired(after, s.oldest)
	}
	s.watches++
	return &shelfWatch{s, after}, nil
}

type shelfWatch struct {
	shelf *shelf
	at    uint64
}

func (w *shelfWatch) Next(ctx context.Context) (uint64, []sources.KeyChange, error) {
	for {
		w.shelf.mu.Lock()
		present := uint64(len(w.shelf.history))
		moved := w.shelf.moved
		if w.at < present {
			defer w.shelf.mu.Unlock()
			w.at++
			return w.at, w.shelf.history[w.at-1], nil
		}
		w.shelf.mu.Unlock()
		timer := time.NewTimer(w.shelf.progress)
		defer timer.Stop()
		select {
		case <-moved:
		case <-timer.C:
			return w.at, nil, nil
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

func (w *shelfWatch) Stop() {
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	w.shelf.watches--
}

func newTextSource(s *shelf) *sources.KeyValueSource[*textEntry] {
	return sources.NewKeyValueSource(s, sources.Values(decodeText))
}

func TestKeyValueSourceKeepsThePromisesOfAListerWatcher(t *testing.T) {
	for name, wide := range map[string]bool{"in pages": false, "whole": true} {
		t.Run(name, func(t *testing.T) {
			conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
				Virtual: true,
				Mark:    func(obj runtime.Object) string { return obj.(*textEntry).Value },
				New: func(t testing.TB) conformance.ListerWatcherRig {
					s := newShelf()
					s.wide = wide
					put := func(name, mark string) error { return s.write(name + "=" + mark) }
					return conformance.ListerWatcherRig{
						Source: newTextSource(s), Create: put, Update: put, Compact: s.compact,
						Delete: func(name string) error { return s.write(name) },
					}
				},
			})
		})
	}
}

// open watches from a version and fails the test if the watch is not stopped at its end.
func open(t *testing.T, source cache.Source, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := source.WatchWithContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

func TestAKeyIsTheNamespaceAndNameOfItsObject(t *testing.T) {
	uids := map[types.UID]bool{}
	for key, want := range map[string]cache.ObjectName{
		"a": {Name: "a"}, "n/a": {Namespace: "n", Name: "a"},
		"n/a/b": {Namespace: "n", Name: "a/b"}, "/a": {Name: "/a"}, "n/": {Name: "n/"},
	} {
		s := newShelf()
		require.NoError(t, s.write(key+"=1"))
		list, err := newTextSource(s).ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		e := list.(*metav1.List).Items[0].Object.(*textEntry)
		assert.Equal(t, want, cache.MetaObjectToName(e))
		assert.Equal(t, key, cache.MetaObjectToName(e).String())
		assert.Len(t, e.UID, 32)
		uids[e.UID] = true
		assert.Equal(t, textEntry{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       want.Namespace,
				Name:            want.Name,
				ResourceVersion: "1",
				UID:             e.UID,
			},
			Key: key, Value: "1", Created: 1, Revision: 1,
		}, *e)
	}
	assert.Len(t, uids, 5)
}

func TestAnObjectKeepsAUIDOfItsOwn(t *testing.T) {
	s := newShelf()
	require.NoError(t, s.write("a=1"))
	source := sources.NewKeyValueSource(s, func(kv sources.KeyValue) (*item, error) {
		return &item{
			ObjectMeta: metav1.ObjectMeta{Name: "other", UID: types.UID("own-" + string(kv.Value))},
		}, nil
	})
	list, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	obj := list.(*metav1.List).Items[0].Object.(*item)
	assert.Equal(t, "a own-1 1", obj.Name+" "+string(obj.UID)+" "+obj.ResourceVersion)
}

func TestKeyValueSourceRefusesUnsupportedOptions(t *testing.T) {
	s := newShelf()
	require.NoError(t, s.write("a=1"))
	source := newTextSource(s)
	for _, test := range []struct {
		options metav1.ListOptions
		is      func(error) bool
		text    string
	}{
		{
			metav1.ListOptions{LabelSelector: "a=b"}, apierrors.IsBadRequest,
			"labelSelector: not supported by this source",
		},
		{
			metav1.ListOptions{FieldSelector: "metadata.name=a"}, apierrors.IsBadRequest,
			"fieldSelector: not supported by this source",
		},
		{
			metav1.ListOptions{ResourceVersion: "x"}, apierrors.IsBadRequest,
			`resourceVersion: not a decimal number: "x"`,
		},
		{
			metav1.ListOptions{ResourceVersion: "2"}, cacheTooLarge,
			"Too large resource version: 2, current: 1",
		},
	} {
		_, err := source.ListWithContext(t.Context(), test.options)
		require.ErrorContains(t, err, test.text)
		require.True(t, test.is(err), err)
		_, err = source.WatchWithContext(t.Context(), test.options)
		require.ErrorContains(t, err, test.text)
		require.True(t, test.is(err), err)
	}
	_, err := source.List(metav1.ListOptions{Continue: "x"})
	require.ErrorContains(t, err, "continue: invalid token")
	require.True(t, apierrors.IsBadRequest(err))
	_, err = source.Watch(metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	require.True(t, apierrors.IsInvalid(err), err)
	require.Zero(t, s.watches)
}

func cacheTooLarge(err error) bool { return cache.CauseOf(err) == cache.CauseVersionTooLarge }

func TestAListAtAnExactRevisionIsThatState(t *testing.T) {
	s := newShelf()
	require.NoError(t, errors.Join(s.write("a=1"), s.write("a=2")))
	source := newTextSource(s)
	exact := metav1.ListOptions{
		ResourceVersion:      "1",
		ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	list, err := source.List(exact)
	require.NoError(t, err)
	assert.Equal(t, "1", list.(*metav1.List).Items[0].Object.(*textEntry).Value)
	require.NoError(t, s.compact())
	_, err = source.List(exact)
	require.True(t, apierrors.IsResourceExpired(err), err)
}

func TestAValueThatCannotBeDecodedIsQuarantinedAlone(t *testing.T) {
	for _, value := range []string{"damaged", "panic"} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			require.NoError(t, errors.Join(s.write("a=1"), s.write("b="+value)))
			informer := cache.NewTypedInformer(newTextSource(s), cache.InformerConfig[*textEntry]{})
			stop := runInformer(t, informer)
			defer stop()
			require.NoError(t, informer.WaitSynced(t.Context()))
			assert.Equal(t, []string{"b"}, quarantined(informer))
			_, err := informer.Get("b")
			require.ErrorIs(t, err, cache.ErrQuarantined)

			require.NoError(t, errors.Join(s.write("a="+value), s.write("b=1")))
			synctest.Wait()
			assert.Equal(t, []string{"a"}, quarantined(informer))
			assert.Equal(t, map[string]string{"a": "1", "b": "1"}, values(informer))
			require.NoError(t, s.write("a"))
			synctest.Wait()
			assert.Empty(t, quarantined(informer))
			assert.Equal(t, map[string]string{"b": "1"}, values(informer))
			assert.Equal(t, "5", informer.Status().AppliedVersion)
		})
	}
}

func runInformer(t *testing.T, informer *cache.Informer[*textEntry]) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ran)
	}
}

func quarantined(informer *cache.Informer[*textEntry]) (keys []string) {
	for _, q := range informer.Status().Quarantined {
		keys = append(keys, q.Key)
	}
	return keys
}

func values(informer *cache.Informer[*textEntry]) map[string]string {
	all := map[string]string{}
	for key, e := range informer.All() {
		all[key] = e.Value
	}
	return all
}

func TestADeletionWithoutItsLastValueArrivesAsATombstoneWithTheKnownOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.unknown = true
		require.NoError(t, s.write("a=1"))
		informer := cache.NewTypedInformer(newTextSource(s), cache.InformerConfig[*textEntry]{})
		var deleted []cache.DeletedObject[*textEntry]
		_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*textEntry]{
			DeleteFunc: func(obj cache.DeletedObject[*textEntry]) { deleted = append(deleted, obj) },
		})
		require.NoError(t, err)
		stop := runInformer(t, informer)
		defer stop()
		require.NoError(t, informer.WaitSynced(t.Context()))
		require.NoError(t, s.write("a"))
		synctest.Wait()
		require.Len(t, deleted, 1)
		last, known := deleted[0].Object()
		require.True(t, known)
		assert.Equal(t, "1", last.Value)
		assert.False(t, deleted[0].FinalStateKnown())
		assert.Empty(t, quarantined(informer))
	})
}

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		return event
	case <-time.After(time.Minute / 2):
		t.Fatal("no event")
	}
	return watch.Event{}
}

func TestAWatchThatIsStoppedInsideATransactionIsResumedAtItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		require.NoError(
			t, errors.Join(s.write("z=0"), s.write("a=1", "b=1", "c=1"), s.write("d=1")))
		source := newTextSource(s)
		w := open(t, source, metav1.ListOptions{ResourceVersion: "1"})
		first := next(t, w)
		assert.Equal(
			t, "a 2", first.Object.(*textEntry).Name+" "+first.Object.(*textEntry).ResourceVersion)
		w.Stop()

		again := open(t, source, metav1.ListOptions{ResourceVersion: "2"})
		for _, want := range []string{"a 2", "b 2", "c 2", "d 3"} {
			e := next(t, again).Object.(*textEntry)
			assert.Equal(t, want, e.Name+" "+e.ResourceVersion)
		}
		again.Stop()
		whole := open(t, source, metav1.ListOptions{ResourceVersion: "3"})
		require.NoError(t, s.write("e=1"))
		assert.Equal(t, "e", next(t, whole).Object.(*textEntry).Name)
	})
}

func TestAWatchFromAnyVersionBeginsWithThePresentObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		require.NoError(t, errors.Join(s.write("a=1"), s.write("a=2"), s.write("b=1")))
		for _, version := range []string{"", "0"} {
			w := open(t, newTextSource(s), metav1.ListOptions{ResourceVersion: version})
			declined := open(
				t, newTextSource(s),
				metav1.ListOptions{ResourceVersion: version, SendInitialEvents: ptr.To(false)})
			for _, want := range []string{"a=2", "b=1"} {
				event := <-w.ResultChan()
				assert.Equal(t, watch.Added, event.Type)
				assert.Equal(
					t, want, event.Object.(*textEntry).Name+"="+event.Object.(*textEntry).Value)
			}
			require.NoError(t, s.write("b=2"))
			for _, watch := range []watch.Interface{w, declined} {
				assert.Equal(t, "2", (<-watch.ResultChan()).Object.(*textEntry).Value)
				watch.Stop()
			}
			require.NoError(t, s.write("b=1"))
		}
	})
}

func TestAStoreInWhichNothingWasWrittenHasAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		informer := cache.NewTypedInformer(newTextSource(s), cache.InformerConfig[*textEntry]{})
		stop := runInformer(t, informer)
		defer stop()
		require.NoError(t, informer.WaitSynced(t.Context()))
		assert.Equal(t, "empty", informer.ResourceVersion())
		require.NoError(t, informer.Fresh(t.Context()))
		require.NoError(t, s.write("a=1"))
		require.NoError(t, informer.Fresh(t.Context()))
		assert.Equal(t, map[string]string{"a": "1"}, values(informer))
		assert.Equal(t, "1", informer.ResourceVersion())
	})
}

func TestAnEntryIsCopiedDeeplyIfItsValueCanBe(t *testing.T) {
	flat := &sources.Entry[map[string]int]{Value: map[string]int{"a": 1}}
	flat.Labels = map[string]string{"a": "1"}
	shared := flat.DeepCopyObject().(*sources.Entry[map[string]int])
	shared.Value["a"] = 2
	shared.Labels["a"] = "2"
	assert.Equal(t, 2, flat.Value["a"])
	assert.Equal(t, "1", flat.Labels["a"])

	deep := &sources.Entry[*metav1.ObjectMeta]{Value: &metav1.ObjectMeta{Name: "a"}}
	deep.DeepCopyObject().(*sources.Entry[*metav1.ObjectMeta]).Value.Name = "b"
	assert.Equal(t, "a", deep.Value.Name)
}

func TestAUIDIsThatOfTheKeyAndItsCreation(t *testing.T) {
	s := newShelf()
	require.NoError(t, errors.Join(s.write("a=1"), s.write("a=2"), s.write("a"), s.write("a=1")))
	uid := func(version string) types.UID {
		exact := metav1.ListOptions{
			ResourceVersion:      version,
			ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}
		list, err := newTextSource(s).List(exact) // another process computes the same UID
		require.NoError(t, err)
		return list.(*metav1.List).Items[0].Object.(*textEntry).UID
	}
	assert.Equal(t, uid("1"), uid("2"))
	assert.NotEqual(t, uid("1"), uid("4"))
	assert.EqualValues(t, "bf1d987701909d7b3e5e755f79d999a5", uid("1"))
}
