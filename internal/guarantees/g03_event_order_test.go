package guarantees

import (
	"context"
	"encoding/json"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/mutation"
)

// sourceHistory records, for each change of a source, the event that a handler receives and
// the state after it.
type sourceHistory struct {
	source *cachetest.Source
	log    []string
	// held are the versions of all keys before the first change and after each.
	held []map[string]int
}

// newSourceHistory begins with an empty source at version 1: no list is of version 0.
func newSourceHistory(t *testing.T) *sourceHistory {
	source := newSource(t)
	source.Advance(1)
	return &sourceHistory{source: source, held: []map[string]int{{}}}
}

// write makes a random change.
func (p *sourceHistory) write(t testing.TB, random *rand.Rand, keys int) {
	name := itoa(random.IntN(keys))
	key := "a/" + name
	now := map[string]int{}
	for k, v := range p.held[len(p.held)-1] {
		now[k] = v
	}
	version := len(p.held) + 1
	_, exists := now[key]
	switch {
	case exists && random.IntN(4) == 0:
		_, err := p.source.Delete("a", name)
		require.NoError(t, err)
		delete(now, key)
		p.log = append(p.log, "delete "+key)
	case exists:
		require.NoError(t, p.source.Apply(labelled(pod("a", name), itoa(version))))
		now[key] = version
		p.log = append(p.log, fmt.Sprint("update ", key, "@", version))
	default:
		require.NoError(t, p.source.Apply(pod("a", name)))
		now[key] = version
		p.log = append(p.log, fmt.Sprint("add ", key, "@", version))
	}
	p.held = append(p.held, now)
}

// assertContinuation fails the test unless notified is the state of the source at some version,
// followed by all later changes in the source's order.
func (p *sourceHistory) assertContinuation(t testing.TB, notified []string, initial int) {
	notified = slices.DeleteFunc(notified, func(line string) bool { return line[0] == 'r' }) // resyncs
	later := len(notified) - initial
	require.LessOrEqual(t, later, len(p.log), "something was delivered twice")
	before := len(p.log) - later
	want := []string{}
	for key, version := range p.held[before] {
		want = append(want, fmt.Sprint("add ", key, "@", version))
	}
	require.ElementsMatch(t, want, notified[:initial], "what the source had after %d changes", before)
	for i, line := range p.log[before:] {
		require.Equal(t, line, notified[initial+i], "change %d of %d", before+i, len(p.log))
	}
}

// G3: a handler without a large backlog receives every change once, in the source's order across
// keys. Fails if anything is dropped, merged or reordered.
func TestG3AnOrderedHandlerReceivesEverythingInTheSourcesOrder(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.OrderedUnbounded} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprint(delivery, " seed ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					random := rand.New(rand.NewPCG(seed, 3))
					p := newSourceHistory(t)
					r := newInformerRig(t, p.source, nil)
					notified, slow := newReplicaHandler(t), newReplicaHandler(t)
					slow.before = func(string) { time.Sleep(5 * time.Millisecond) }
					r.handle(notified, cache.HandlerOptions{Delivery: delivery})
					r.handle(slow, cache.HandlerOptions{Delivery: delivery})
					r.run()
					sleep(time.Second)
					for range 900 {
						p.write(t, random, 20)
						if random.IntN(10) == 0 {
							sleep(time.Duration(random.IntN(20)) * time.Millisecond)
						}
					}
					sleep(10 * time.Second)
					p.assertContinuation(t, notified.take(), 0)
					p.assertContinuation(t, slow.take(), 0)
					slow.assertEqualsStore(r.inf.Shared().GetStore())
					r.stop()
				})
			})
		}
	}
}

// G3: whatever its backlog and delivery mode, and whatever the source does, a handler receives for
// each key an Add, then Updates whose old object was received last, then a Delete, and converges to
// the source; replicaHandler checks it. Fails if merging or a relist breaks that.
func TestG3ForEachKeyAHandlerReceivesAddThenUpdatesThenDelete(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkEventOrder(t, rand.New(rand.NewPCG(seed, 4))) })
		})
	}
}

func checkEventOrder(t *testing.T, random *rand.Rand) {
	r := newInformerRig(t, newSource(t), func(c *cache.InformerConfig[*object]) {
		c.ReflectorOptions.PageSize = 5
		c.ReflectorOptions.Strategy = cache.ListStrategy(random.IntN(4))
	})
	replicas := []*replicaHandler{}
	add := func() {
		notified, pause := newReplicaHandler(t), time.Duration(random.IntN(3))*40*time.Millisecond
		notified.before = func(string) { time.Sleep(pause) }
		period := time.Duration(random.IntN(3)) * 7 * time.Second
		r.handle(notified, cache.HandlerOptions{Delivery: cache.Delivery(len(replicas) % 3), ResyncPeriod: &period})
		replicas = append(replicas, notified)
	}
	for range 3 {
		add()
	}
	r.run()
	for i := range 3000 {
		name := itoa(random.IntN(25))
		switch random.IntN(12) {
		case 0, 1:
			_, _ = r.source.Delete("a", name)
		case 2:
			_, _ = r.source.DeleteSilently("a", name)
		default:
			must(t, r.source.Apply(labelled(pod("a", name), itoa(i))))
		}
		injectFault(r.source, random)
		if random.IntN(20) == 0 {
			sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
		if i%600 == 300 {
			add()
		}
	}
	r.source.Heal()
	r.source.CompactAll()
	r.source.BreakWatches(cachetest.ErrExpired()) // the relist shows the hidden changes
	sleep(10 * time.Minute)
	require.Equal(t, len(r.source.Objects()), r.inf.Len())
	for _, notified := range replicas {
		notified.assertEqualsStore(r.inf.Shared().GetStore())
	}
	r.stop()
}

// G3: a merged change keeps the position of its oldest part.
func TestG3MergedChangesKeepTheOrderOfTheirOldestParts(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"), pod("a", "4")), nil)
				notified := newReplicaHandler(t)
				gate := make(chan struct{})
				r.handle(notified, cache.HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				notified.take()
				notified.before = func(string) { <-gate }
				for _, name := range []string{"4", "3", "1", "2"} {
					must(t, r.source.Apply(labelled(pod("a", name), "x")))
					synctest.Wait()
				}
				for i := range 1200 {
					must(t, r.source.Apply(labelled(pod("a", itoa(1+i%3)), itoa(i))))
				}
				must(t, r.source.Apply(pod("a", "0")))
				sleep(time.Second)
				close(gate)
				synctest.Wait()
				assert.Equal(t, []string{"update a/4@5", "update a/3@1208", "update a/1@1206", "update a/2@1207", "add a/0@1209"}, notified.take())
				r.stop()
			})
		})
	}
}

// G3: no key begins with a Delete. Fails if merging an Add with the Delete after it leaves a change.
func TestG3AnObjectAddedAndDeletedBehindABusyHandlerIsNotDelivered(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
				notified := newReplicaHandler(t)
				gate := make(chan struct{})
				r.handle(notified, cache.HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				notified.take()
				notified.before = func(string) { <-gate }
				for i := range 1200 { // enough for an Ordered handler to merge
					must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
				}
				for range 2 {
					must(t, r.source.Apply(pod("a", "2")))
					must(t, r.source.Apply(labelled(pod("a", "2"), "x")))
					_, err := r.source.Delete("a", "2")
					require.NoError(t, err)
				}
				sleep(time.Second)
				close(gate)
				synctest.Wait()
				calls := notified.take()
				require.NotEmpty(t, calls)
				for _, call := range calls {
					assert.Contains(t, call, "update a/1@")
				}
				r.stop()
			})
		})
	}
}

// G3: a handler that joins during writes receives a point-in-time snapshot and then all later changes,
// without gap or repetition, whenever it joins and also while it resyncs. Fails if a change published
// during the snapshot is lost, delivered twice, or delivered before it.
func TestG3ALateHandlerContinuesExactlyWhereItsSnapshotEnds(t *testing.T) {
	seeds := uint64(15)
	if sampled() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { joinWhileWriting(t, rand.New(rand.NewPCG(seed, 6))) })
		})
	}
}

func joinWhileWriting(t *testing.T, random *rand.Rand) {
	p := newSourceHistory(t)
	r := newInformerRig(t, p.source, nil)
	r.run()
	for range 300 {
		p.write(t, random, 200)
	}
	var joining sync.WaitGroup
	replicas := make([]*replicaHandler, 30)
	second := time.Second
	for i := range replicas {
		replicas[i] = newReplicaHandler(t)
		joining.Go(func() {
			// At the instant of a write, on another goroutine than the writer's.
			time.Sleep(time.Duration(1+i/3) * 10 * time.Millisecond)
			for range i % 3 * 50 { // vary the moment within the write
				_ = r.inf.Status()
			}
			_, err := r.inf.Shared().AddEventHandlerWithOptions(replicas[i], cache.HandlerOptions{Delivery: cache.OrderedUnbounded, ResyncPeriod: &second})
			assert.NoError(t, err)
		})
	}
	for range 60 {
		time.Sleep(10 * time.Millisecond)
		for range 20 {
			p.write(t, random, 200)
		}
	}
	joining.Wait()
	for range 20 { // and while they resync
		time.Sleep(100 * time.Millisecond)
		for range 20 {
			p.write(t, random, 200)
		}
	}
	synctest.Wait()
	for _, notified := range replicas {
		notified.assertEqualsStore(r.inf.Shared().GetStore())
		resyncs := 0
		for _, line := range notified.log {
			if line[0] == 'r' {
				resyncs++
			}
		}
		assert.Greater(t, resyncs, 50)
		p.assertContinuation(t, notified.take(), notified.initial)
	}
	r.stop()
}

// copyHookObject calls a hook when it is copied. An informer with a mutation detector copies
// an object right before it writes it.
type copyHookObject struct {
	object
	copied func()
}

func (n *copyHookObject) MarshalJSON() ([]byte, error) {
	if n.copied != nil {
		n.copied()
	}
	return json.Marshal(n.object)
}

// newCopyHookInformer returns an informer that calls writes before each write of an object.
func newCopyHookInformer(source *cachetest.Source, writes func()) *cache.Informer[*copyHookObject] {
	return cache.NewTypedInformer(source, cache.InformerConfig[*copyHookObject]{
		Convert: func(obj any) (*copyHookObject, error) {
			return &copyHookObject{object: *obj.(*object), copied: writes}, nil
		},
		ObjectType:       &object{},
		DetectMutations:  mutation.Options{Period: 100 * time.Hour}.New,
		ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
	})
}

func runCopyHookInformer(t *testing.T, inf *cache.Informer[*copyHookObject]) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	synctest.Wait()
	return func() { cancel(); assert.NoError(t, <-done) }
}

// G3: a handler that joins during a write is notified of it once.
func TestG3AHandlerThatJoinsDuringAWriteIsNotifiedOfItOnce(t *testing.T) {
	for _, event := range []string{"add", "update"} {
		t.Run(event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				late := newReplicaHandler(t)
				joins := false
				var inf *cache.Informer[*copyHookObject]
				inf = newCopyHookInformer(source, func() {
					if joins {
						joins = false
						_, err := inf.Shared().AddEventHandler(late)
						assert.NoError(t, err)
					}
				})
				stop := runCopyHookInformer(t, inf)
				joins = true
				if event == "add" {
					must(t, source.Apply(pod("a", "2")))
				} else {
					must(t, source.Apply(labelled(pod("a", "1"), "x")))
				}
				synctest.Wait()
				assert.False(t, joins)
				want := map[string][]string{"add": {"add a/1@1", "add a/2@2"}, "update": {"add a/1@1", "update a/1@2"}}[event]
				assert.ElementsMatch(t, want, late.take())
				must(t, source.Apply(pod("a", "3")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/3@3"}, late.take())
				late.assertEqualsStore(inf.Shared().GetStore())
				stop()
				source.Close()
			})
		})
	}
}

// G3: a resync that is due during a write delivers the state before the write.
func TestG3AResyncDuringAWriteComesBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		var slow atomic.Bool
		inf := newCopyHookInformer(source, func() {
			if slow.Load() {
				time.Sleep(30 * time.Second)
			}
		})
		notified, period := newReplicaHandler(t), time.Minute
		_, err := inf.Shared().AddEventHandlerWithOptions(notified, cache.HandlerOptions{ResyncPeriod: &period})
		must(t, err)
		stop := runCopyHookInformer(t, inf)
		sleep(50 * time.Second)
		notified.take()
		slow.Store(true)
		must(t, source.Apply(labelled(pod("a", "1"), "x")))
		sleep(20 * time.Second) // the resync has become due
		assert.ElementsMatch(t, []string{"resync a/1@1", "resync a/2@2"}, notified.take())
		slow.Store(false)
		sleep(15 * time.Second)
		assert.Equal(t, []string{"update a/1@3"}, notified.take())
		notified.assertEqualsStore(inf.Shared().GetStore())
		stop()
		source.Close()
	})
}

// G3: for an object that was re-created during a stream a handler receives a Delete and an Add, or
// only the Add of the new one. Fails if it receives an Update.
func TestG3InAStreamAnObjectWithANewUIDIsRecreated(t *testing.T) {
	first, second := added(podWithKey("a/1", "5")), added(withUID(podWithKey("a/1", "7"), "another"))
	for name, row := range map[string]struct {
		streams [][]watch.Event
		calls   []string
	}{
		"first list":                  {[][]watch.Event{{first, second, initialEventsEndEvent("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"first list, modified":        {[][]watch.Event{{first, modified(second.Object), initialEventsEndEvent("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"first list, with a deletion": {[][]watch.Event{{first, deleted(podWithKey("a/1", "6")), second, initialEventsEndEvent("8")}}, []string{"add a/1@5", "delete a/1@6", "add a/1@7"}},
		"later list":                  {[][]watch.Event{{first, initialEventsEndEvent("5"), expiredEvent()}, {second, initialEventsEndEvent("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"later list, both":            {[][]watch.Event{{first, initialEventsEndEvent("5"), expiredEvent()}, {first, second, initialEventsEndEvent("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"later list, with a deletion": {[][]watch.Event{{first, initialEventsEndEvent("5"), expiredEvent()}, {first, deleted(podWithKey("a/1", "6")), second, initialEventsEndEvent("8")}}, []string{"add a/1@5", "delete a/1@6", "add a/1@7"}},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				m := start(&streamScript{streams: row.streams}, &object{})
				sleep(pause)
				assert.Equal(t, []string{"a/1@7"}, m.storedVersions())
				if calls := m.handlerCalls(); mirror == "an informer" || mirror == "a controller" {
					assert.Equal(t, row.calls, calls)
				}
			})
		})
	}
}
