package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// G3: a handler that joins while the source is written to is told of a snapshot of one
// moment, and then of everything that happened after it: no gap, nothing twice, whenever
// it joins and while it resyncs. Fails if what is published during a snapshot is lost,
// told as well, or told before it.
func TestG3ALateHandlerGoesOnExactlyWhereItsSnapshotEnds(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { joinWhileWriting(t, rand.New(rand.NewPCG(seed, 6))) })
		})
	}
}

func joinWhileWriting(t *testing.T, random *rand.Rand) {
	p := newPast(t)
	r := newInformerRig(t, p.source, nil)
	r.run()
	for range 300 {
		p.write(t, random, 200)
	}
	var joining sync.WaitGroup
	replicas := make([]*replica, 30)
	second := time.Second
	for i := range replicas {
		replicas[i] = newReplica(t)
		joining.Go(func() {
			// At the instant of a write; another goroutine than the writer's.
			time.Sleep(time.Duration(1+i/3) * 10 * time.Millisecond)
			for range i % 3 * 50 { // and somewhat later in it
				_ = r.inf.Status()
			}
			_, err := r.inf.Shared().AddEventHandlerWithOptions(replicas[i], HandlerOptions{Delivery: OrderedUnbounded, ResyncPeriod: &second})
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
	for _, told := range replicas {
		told.equals(r.inf.Shared().GetStore())
		resyncs := 0
		for _, line := range told.log {
			if line[0] == 'r' {
				resyncs++
			}
		}
		assert.Greater(t, resyncs, 50)
		p.continues(t, told.take(), told.initial)
	}
	r.stop()
}

// bulk is a source of many objects that are made without an API server's care for each,
// and of events that a test sends.
type bulk struct {
	scripted
	items   []object
	lists   int
	version int
	events  chan watch.Event
}

func newBulk(objects int) *bulk {
	s := &bulk{items: make([]object, objects), version: objects, events: make(chan watch.Event)}
	for i := range s.items {
		s.items[i] = *podAt("a", itoa(i), itoa(i+1))
	}
	s.list = func(o metav1.ListOptions) (apiruntime.Object, error) {
		if isVersionCheck(o) { // it has gone on, whatever was sent
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1000000000"}}, nil
		}
		s.lists++
		// The copies are shallow: nobody changes an object.
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: itoa(s.version)}, Items: slices.Clone(s.items),
		}, nil
	}
	s.watch = func(context.Context, int) (watch.Interface, error) { return &probe{events: s.events}, nil }
	return s
}

// change gives an object the next version, for the next list.
func (s *bulk) change(i int) {
	s.version++
	s.items[i].ResourceVersion = itoa(s.version)
}

// A handler that joins an informer of 100,000 objects pauses nobody, though it hangs at
// the first of them: the next event is applied and told to others, and readers answer,
// within the same instant.
func TestAHandlerThatJoinsAHundredThousandObjectsPausesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 100_000
		source := newBulk(objects)
		r := newBulkRig(t, source)
		first := newReplica(t)
		first.onlyCounts = true
		r.handle(first)
		r.run()
		synctest.Wait()
		require.Equal(t, objects, first.told())

		began := time.Now()
		late, goOn := stalled(t)
		late.onlyCounts = true
		handle := r.handle(late)
		synctest.Wait()
		assert.Equal(t, objects-1, r.handlerStatus(1).Backlog, "all but the one that is being told")
		source.events <- watch.Event{Type: watch.Modified, Object: labelled(podAt("a", "7", itoa(objects+1)), "x")}
		synctest.Wait()
		assert.Equal(t, objects+1, first.told())
		stored, _ := r.inf.Lookup("a/7")
		assert.Equal(t, "x", stored.Labels["v"])
		assert.False(t, handle.HasSynced())
		goOn()
		synctest.Wait()
		assert.True(t, handle.HasSynced())
		assert.Equal(t, objects, late.initial)
		assert.Equal(t, objects+1, late.told())
		late.equals(r.inf.Shared().GetStore())
		assert.Zero(t, time.Since(began))
		r.cancel()
		<-r.done
	})
}

// newBulkRig is a rig without a cachetest source.
func newBulkRig(t *testing.T, source ListerWatcher) *informerRig {
	r := &informerRig{T: t, heard: &heard{}}
	r.inf = NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ErrorHandler: r.heard.handle}})
	return r
}
