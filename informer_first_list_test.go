package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listedInformer is an informer that nobody runs: a test hands it lists, and its handler's
// calls are made when they are asked for.
type listedInformer struct {
	*sharedIndexInformer
	told *recorder
	// view is what the handler knows: the version of each object.
	view map[string]string
}

// newListedInformer makes one that takes a first list the short way, or by way of its queue.
func newListedInformer(t *testing.T, byQueue bool) *listedInformer {
	options := SharedIndexInformerOptions{Indexers: Indexers{"tag": func(obj any) ([]string, error) {
		if obj.(*object).Labels["bad"] != "" {
			return nil, errBoom
		}
		return []string{obj.(*object).Labels["v"]}, nil
	}}}
	if byQueue {
		options.Transform = func(obj any) (any, error) { return obj, nil }
	}
	l := &listedInformer{newSharedIndexInformer(&scripted{}, &object{}, options), &recorder{}, map[string]string{}}
	l.ctx = bg
	_, err := l.AddEventHandler(l.told)
	require.NoError(t, err)
	return l
}

func (l *listedInformer) begin() *informerReplacement {
	return informerStore{l.queue, l.sharedIndexInformer}.BeginReplace(ReplaceOptions{}).(*informerReplacement)
}

// foreignKey is how the keys of objects begin that somebody puts into the store: the handler
// hears of them when a list shows that they are not the source's.
const foreignKey = "b/"

// calls makes the handler's calls, keeps its view, and returns them.
func (l *listedInformer) calls(t *testing.T) []string {
	listener := l.currentListeners()[0]
	for n, ok := listener.take(); ok; n, ok = listener.take() {
		listener.tell(bg, n)
		if n.kind == endOfList {
			continue
		}
		_, had := l.view[n.key.String()]
		had = had || strings.HasPrefix(n.key.String(), foreignKey)
		switch {
		case n.kind == tellAdd && had, n.kind == tellUpdate && !had, n.kind == tellDelete && !had:
			t.Errorf("call of kind %d for %s, of which the handler has had=%v", n.kind, n.key, had)
		case n.kind == tellDelete:
			delete(l.view, n.key.String())
		default:
			l.view[n.key.String()] = receivedOf(n.obj).ResourceVersion
		}
	}
	l.tidy()
	return l.told.take()
}

// heldKeys are the keys of what is held back.
func (l *listedInformer) heldKeys() (keys []string) {
	for _, held := range append(l.store.quarantined(), l.queue.quarantined()...) {
		keys = append(keys, held.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// lists makes parts at random, which have everything that came before, if it is begun anew.
type lists struct {
	*rand.Rand
	version int
	// calm ones have nothing out of the ordinary, strange ones have objects that came before,
	// that no index takes or that have no name; others may keep objects or have them gone.
	calm, strange bool
	all           []*object
}

func newLists(seed uint64) *lists {
	l := &lists{Rand: rand.New(rand.NewPCG(seed, 1)), version: 100}
	kind := l.IntN(3)
	l.calm, l.strange = kind == 0, kind == 1
	return l
}

func (l *lists) object() *object {
	l.version++
	return labelled(podAt("a", itoa(l.version), itoa(l.version)), itoa(l.IntN(5)))
}

// before is a newer state of an object that came before, if any did.
func (l *lists) before() *object {
	obj := l.object()
	if len(l.all) > 0 {
		earlier := l.all[l.IntN(len(l.all))]
		obj.Name, obj.UID = earlier.Name, earlier.UID
	}
	return obj
}

func (l *lists) part() (part ReplacementPart) {
	for range l.IntN(80) {
		obj := l.object()
		if l.strange {
			switch l.IntN(120) {
			case 0:
				obj.Labels["bad"] = "yes"
			case 1:
				obj.Name = ""
			case 2:
				obj = l.before()
			case 3:
				if len(l.all) > 0 {
					obj = l.all[l.IntN(len(l.all))].DeepCopy() // nothing has changed
				}
			}
		}
		part.Items, l.all = append(part.Items, obj), append(l.all, obj)
	}
	if !l.calm && l.IntN(4) == 0 {
		part.Keep = append(part.Keep, l.before(), podAt("b", itoa(l.IntN(3)), "1"))
	}
	if !l.calm && l.IntN(4) == 0 {
		part.Gone = append(part.Gone, l.before())
	}
	return part
}

// again is everything that came before, but for some. What no index took comes first, and is
// mended.
func (l *lists) again() (part ReplacementPart) {
	for _, obj := range l.all {
		if obj.Labels["bad"] != "" {
			mended := l.object()
			mended.Name, mended.UID = obj.Name, obj.UID
			part.Items = append(part.Items, mended)
		}
	}
	for _, obj := range l.all {
		if l.IntN(10) > 0 {
			part.Items = append(part.Items, obj)
		}
	}
	return part
}

func copyOf(part ReplacementPart) ReplacementPart {
	for _, objects := range []*[]any{&part.Items, &part.Keep, &part.Gone} {
		*objects = slices.Clone(*objects)
		for i, obj := range *objects {
			(*objects)[i] = obj.(*object).DeepCopy()
		}
	}
	return part
}

// G3, G7: the short way of a first list leads where the way by the queue leads: whatever
// comes in a list, is given up and begun anew, or is put into the store by somebody else.
// Fails if an object is left out or stays, or if the handler hears of something else.
func TestAFirstListPastTheQueueDoesWhatOneThroughItDoes(t *testing.T) {
	for seed := range uint64(300) {
		short, long, source := newListedInformer(t, false), newListedInformer(t, true), newLists(seed)
		same := func() {
			one, two := short.calls(t), long.calls(t)
			if !source.strange { // of an object that comes twice the queue may tell once
				slices.Sort(one)
				slices.Sort(two)
				require.Equal(t, two, one, "seed %d", seed)
			}
			require.Equal(t, long.view, short.view, "seed %d", seed)
			require.Equal(t, contents(long.store), contents(short.store), "seed %d", seed)
			require.Equal(t, long.heldKeys(), short.heldKeys(), "seed %d", seed)
		}
		part := source.part()
		for try := 0; ; try++ {
			one, two := short.begin(), long.begin()
			for range source.IntN(8) {
				if source.IntN(15) == 0 {
					theirs := podAt("b", itoa(source.IntN(3)), itoa(source.version))
					require.NoError(t, short.store.Add(theirs))
					require.NoError(t, long.store.Add(theirs))
				}
				theirs := copyOf(part)
				rejected, err := one.Part(bg, copyOf(part))
				require.NoError(t, err)
				also, err := two.Part(bg, theirs)
				require.NoError(t, err)
				require.Equal(t, len(also), len(rejected), "seed %d", seed)
				same()
				require.False(t, short.queue.HasSynced())
				part = source.part()
			}
			if try < 2 && source.IntN(3) == 0 {
				one.Abort()
				two.Abort()
				part = source.again()
				continue
			}
			require.NoError(t, one.Commit(bg, itoa(source.version)))
			require.NoError(t, two.Commit(bg, itoa(source.version)))
			break
		}
		same()
		require.Equal(t, itoa(source.version), short.LastSyncResourceVersion())
		require.True(t, short.queue.HasSynced())
		require.True(t, short.HasSynced())
		found := 0
		for at := range 5 {
			one, _ := short.store.IndexKeys("tag", itoa(at))
			two, _ := long.store.IndexKeys("tag", itoa(at))
			require.Equal(t, two, one, "seed %d", seed)
			found += len(one)
		}
		for key := range contents(short.store) {
			if strings.HasPrefix(key, foreignKey) {
				found++ // without a value, and kept
			}
		}
		require.Equal(t, short.store.storage.len(), found, "each of the source's has a value")
	}
}

// What is ordinary in a first list does not go through the queue, be the list in one part or
// in many. Fails if an object takes a text, or an entry in a map, that nobody asks for.
func TestAFirstListCostsATypedInformerNoAllocationPerObject(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector allocates")
	}
	const objects, partLen = 10_000, 100
	inf := NewInformerFor(&ListWatch{}, InformerConfig[*metav1.PartialObjectMetadata]{}).shared
	inf.ctx = bg
	told := 0
	_, err := addTypedHandler(inf, TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{}, nil)
	require.NoError(t, err)
	var parts []ReplacementPart
	for n := 0; n < objects; {
		var part ReplacementPart
		for range partLen {
			n++
			part.Items = append(part.Items, smallObject(n, n))
		}
		parts = append(parts, part)
	}
	l := inf.currentListeners()[0]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list := informerStore{inf.queue, inf}.BeginReplace(ReplaceOptions{})
	for _, part := range parts {
		rejected, err := list.Part(bg, part)
		require.NoError(t, err)
		require.Empty(t, rejected)
		told += tellAll(l)
		inf.tidy()
	}
	require.NoError(t, list.Commit(bg, itoa(objects)))
	runtime.ReadMemStats(&after)
	assert.Equal(t, objects, told)
	assert.Len(t, inf.store.ListKeys(), objects)
	assert.LessOrEqual(t, float64(after.Mallocs-before.Mallocs)/objects, 0.2)
}

// G9: if the context ends in the middle of a part, no function is called for what is left of
// it, and what was written before is what the handlers are told of. Fails if the rest is
// written, or if somebody reads of an object that no handler hears of.
func TestAFirstListThatIsCutOffTellsWhatItHasWritten(t *testing.T) {
	for _, after := range []int{1, directly - 1, directly, directly + 1, 3*directly - 1} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			ctx, cancel := context.WithCancel(bg)
			called := 0
			inf := newSharedIndexInformer(&scripted{}, &object{}, SharedIndexInformerOptions{
				Indexers: Indexers{"tag": func(any) ([]string, error) {
					if called++; called == after {
						cancel()
					}
					return nil, nil
				}},
			})
			l := &listedInformer{inf, &recorder{}, map[string]string{}}
			l.ctx = ctx
			_, err := l.AddEventHandler(l.told)
			require.NoError(t, err)
			list := l.begin()
			var part ReplacementPart
			for i := range 3 * directly {
				part.Items = append(part.Items, podAt("a", itoa(i), itoa(i+1)))
			}
			_, err = list.Part(ctx, part)
			require.True(t, errors.Is(err, context.Canceled))
			assert.Equal(t, after, called)
			l.calls(t)
			assert.Equal(t, contents(inf.store), l.view)
			assert.Len(t, l.view, (after-1)/directly*directly, "what is prepared when it ends is not written")
		})
	}
}

// joinedInformer is an informer that runs without a source: a test hands it lists, while handlers
// join it.
type joinedInformer struct {
	*listedInformer
	mu   sync.Mutex
	adds map[string]int
}

func newJoinedInformer(index func(j *joinedInformer)) (j *joinedInformer, stop func()) {
	j = &joinedInformer{adds: map[string]int{}}
	inf := newSharedIndexInformer(&scripted{}, &object{}, SharedIndexInformerOptions{
		Indexers: Indexers{"tag": func(any) ([]string, error) {
			index(j)
			return nil, nil
		}},
	})
	j.listedInformer = &listedInformer{inf, &recorder{}, map[string]string{}}
	ctx, cancel := context.WithCancel(bg)
	r := running{ctx: ctx, goroutines: &group{}, cancel: cancel}
	inf.ctx = ctx
	inf.start(r)
	return j, func() {
		cancel()
		r.goroutines.wait()
	}
}

// join adds a handler that counts what it is told.
func (j *joinedInformer) join(t *testing.T) {
	_, err := j.AddEventHandler(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.adds[nameOf(obj)]++
	}})
	assert.NoError(t, err)
}

// hasAll fails the test unless each of so many objects was told once.
func (j *joinedInformer) hasAll(t *testing.T, objects int) {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.Len(t, j.adds, objects)
	for key, times := range j.adds {
		assert.Equal(t, 1, times, key)
	}
}

func podsFromTo(from, to int) (part ReplacementPart) {
	for i := from; i < to; i++ {
		part.Items = append(part.Items, podAt("a", itoa(i), itoa(i+1)))
	}
	return part
}

// G3, G5: a handler that joins in the middle of a first list, while a function of the user's is
// called for an object of it, hears of every object once. Fails if writes are published later
// than user code is called again, for the handler has seen one of them and not the others.
func TestAHandlerThatJoinsInAPartOfAFirstListHearsOfAllOfIt(t *testing.T) {
	for _, at := range []int{1, 2, directly, directly + 1, 70, 3*directly + 1, 100, 101, 200} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				j, stop := newJoinedInformer(func(j *joinedInformer) {
					if calls++; calls == at {
						j.join(t)
					}
				})
				list := j.begin()
				for from := 0; from < 200; from += 100 {
					_, err := list.Part(j.ctx, podsFromTo(from, from+100))
					require.NoError(t, err)
				}
				require.NoError(t, list.Commit(j.ctx, "1000"))
				j.hasAll(t, 200)
				stop()
			})
		})
	}
}

// G3, G5: likewise one that joins while a first list is read again after it has failed, of which
// everything so far was there already. Fails if a write of nothing counts.
func TestAHandlerThatJoinsAFirstListThatIsReadAgainHearsOfAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, stop := newJoinedInformer(func(*joinedInformer) {})
		list := j.begin()
		_, err := list.Part(j.ctx, podsFromTo(0, 40))
		require.NoError(t, err)
		list.Abort()
		list = j.begin()
		_, err = list.Part(j.ctx, podsFromTo(0, 40))
		require.NoError(t, err)
		j.join(t)
		_, err = list.Part(j.ctx, podsFromTo(40, 80))
		require.NoError(t, err)
		require.NoError(t, list.Commit(j.ctx, "1000"))
		j.hasAll(t, 80)
		stop()
	})
}
