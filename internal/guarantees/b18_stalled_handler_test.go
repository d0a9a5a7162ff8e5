package guarantees

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// raceDetected says whether the race detector is built in, which makes measured memory
// meaningless.
func raceDetected() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// heap returns the number of live bytes.
func heap() int64 {
	// Twice: objects with a finalizer or a cleanup are freed by the second one.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// B18, G8: the backlog of a hanging handler is bounded, and released when it has caught up: 500,000
// updates of one object of about 1 KiB use at most 4 MiB with the default delivery, 1 MiB
// coalesced. (client-go: 891 MiB.)
func TestB18AStalledHandlerIsBoundedAndItsMemoryReleased(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	for delivery, limit := range map[cache.Delivery]int64{cache.Ordered: 4 << 20, cache.Coalesced: 1 << 20} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stalledUnderUpdates(t, delivery, limit) })
		})
	}
}

func stalledUnderUpdates(t *testing.T, delivery cache.Delivery, limit int64) {
	const updates = 500_000
	source := newBulkSource(1)
	r := newBulkRig(t, source)
	var last *object
	calls, gate := 0, make(chan struct{})
	handle := r.handle(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { <-gate },
		UpdateFunc: func(_, obj any) { calls++; last = obj.(*object) },
	}, cache.HandlerOptions{Delivery: delivery})
	r.run()
	synctest.Wait()
	before := heap()
	most := int64(0)
	for i := 1; i <= updates; i++ {
		source.events <- watch.Event{Type: watch.Modified, Object: kibiObject("0", i+1)}
		if i%100_000 == 0 || i == 1000 {
			synctest.Wait()
			most = max(most, heap()-before)
		}
	}
	assert.LessOrEqual(t, most, limit)
	assert.Equal(t, 1, r.handlerStatus(0).Backlog)
	close(gate)
	sleep(time.Second)
	require.True(t, handle.HasSynced())
	assert.Equal(t, updates+1, versionOf(last))
	assert.LessOrEqual(t, calls, 2)
	after := heap() - before
	assert.LessOrEqual(t, after, int64(64<<10), "it releases what it allocated")
	t.Logf("%s: at most %d KiB while it hung, %d KiB after it", delivery, most>>10, after>>10)
	r.cancel()
	<-r.done
}

// B18: the memory of many pending objects is released with every delivery, also if nothing was merged.
func TestB18TheMemoryOfALongBacklogIsReleased(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const objects, rounds = 5000, 4
				source := newBulkSource(objects)
				r := newBulkRig(t, source)
				notified := &countingHandler{}
				gate := make(chan struct{}, 1)
				gate <- struct{}{}
				r.handle(gated{notified, gate}, cache.HandlerOptions{Delivery: delivery})
				r.run()
				synctest.Wait()
				require.Equal(t, objects, notified.count(callCounts{}).adds)
				r.sendRounds(source, objects, 1)
				synctest.Wait()
				before := heap()
				<-gate
				r.sendRounds(source, objects, rounds)
				synctest.Wait()
				status := r.handlerStatus(0)
				assert.Equal(t, delivery != cache.OrderedUnbounded, status.Merging)
				gate <- struct{}{}
				synctest.Wait()
				after := heap() - before
				assert.LessOrEqual(t, after, int64(256<<10), fmt.Sprint(status.Backlog, " waited"))
				r.cancel()
				<-r.done
			})
		})
	}
}

// gated is a handler that takes a token from gate for each call, and puts it back.
type gated struct {
	*countingHandler
	gate chan struct{}
}

func (g gated) OnUpdate(old, obj any) {
	<-g.gate
	g.countingHandler.OnUpdate(old, obj)
	g.gate <- struct{}{}
}

// B18, G8: a handler that hangs in the first of several changes receives the others merged with
// later changes, and merged records are released. Fails if more than one record is removed from the
// log before the handler returns, or if the log is retained from that record on.
func TestB18AHandlerThatHangsInTheFirstOfSeveralChangesIsBounded(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	synctest.Test(t, func(t *testing.T) {
		const objects, updates = 5, 50_000
		source := newBulkSource(objects)
		r := newBulkRig(t, source)
		slow, goOn := stalledReplica(t)
		r.handle(slow)
		r.run()
		sleep(10 * time.Second)
		before := heap()
		for i := range updates {
			source.events <- watch.Event{Type: watch.Modified, Object: kibiObject(itoa(i%objects), objects+i+1)}
		}
		synctest.Wait()
		assert.LessOrEqual(t, heap()-before, int64(4<<20))
		status := r.handlerStatus(0)
		assert.True(t, status.Merging)
		assert.Equal(t, objects, status.Backlog)
		assert.Equal(t, 10*time.Second, status.OldestAge)
		goOn()
		synctest.Wait()
		slow.assertEqualsStore(r.inf.Shared().GetStore())
		want := []string{"add a/0@1"}
		for i := 1; i < objects; i++ {
			want = append(want, "add a/"+itoa(i)+"@"+itoa(updates+i+1))
		}
		assert.Equal(t, append(want, "update a/0@"+itoa(updates+1)), slow.take())
		assert.Zero(t, r.handlerStatus(0).Backlog)
		r.cancel()
		<-r.done
	})
}
