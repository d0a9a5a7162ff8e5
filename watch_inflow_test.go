package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// flood is an informer whose source sends faster than its events are applied: one of them is
// held, where its index value is computed, until goOn is called.
type flood struct {
	*informerRig
	source *bulk
	// sent is how many events the source has got rid of; before that many of them were in the
	// channel when the informer began.
	sent   atomic.Int64
	before int
	gate   chan struct{}
	told   *replica
}

// newFlood holds the event with a number, from 1 on. The first events are in the channel when
// the watch begins, so that it is a flood whatever the scheduler does.
func newFlood(t *testing.T, held int) *flood {
	f := &flood{source: newBulk(0), before: 2 * directly, gate: make(chan struct{})}
	f.source.version = 1 // from "0" on events are in no order
	f.source.events = make(chan watch.Event, f.before)
	f.informerRig = &informerRig{T: t, heard: &heard{}}
	f.inf = NewInformerFor(f.source, InformerConfig[*object]{
		ReflectorOptions: ReflectorOptions{ErrorHandler: f.heard.handle},
		Indexes: TypedIndexers[*object]{"held": func(obj *object) ([]string, error) {
			if obj.Name == itoa(held) {
				<-f.gate
			}
			return nil, nil
		}},
	})
	f.told = newReplica(t)
	f.handle(f.told)
	return f
}

// send sends the events from one number up to another, each of another object.
func (f *flood) send(from, to int) {
	for n := from; n <= to; n++ {
		f.source.events <- watch.Event{Type: watch.Added, Object: podAt("a", itoa(n), itoa(n))}
		f.sent.Add(1)
	}
}

func (f *flood) begin(events int) {
	f.send(1, f.before)
	go f.send(f.before+1, events)
	f.run()
	synctest.Wait()
}

// has says that the store has exactly the objects up to one, and the handler was told of each.
func (f *flood) has(objects int) {
	f.Helper()
	assert.Equal(f, objects, f.inf.Len())
	f.told.equals(f.inf.Shared().GetStore())
	assert.Len(f, f.told.take(), objects)
}

// A source that sends faster than its events are applied goes on sending meanwhile. Fails if
// it has to wait for whatever the informer is doing.
func TestAFloodIsReceivedWhileWhatCameBeforeIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const held, events = 200, 3000
		f := newFlood(t, held)
		f.begin(events)
		ahead := int(f.sent.Load()) - f.before - held
		assert.GreaterOrEqual(t, ahead, inflowLen)
		assert.LessOrEqual(t, ahead, 2*inflowLen, "what is received ahead is bounded")
		close(f.gate)
		synctest.Wait()
		f.has(events)
		assert.Equal(t, itoa(events), f.inf.LastSyncResourceVersion())
		assert.Equal(t, 1, f.source.lists)
		f.cancel()
		<-f.done
	})
}

// The goroutine that receives a flood ends with it. Fails if an informer that is quiet again
// keeps it.
func TestNobodyReceivesAheadOnceAFloodIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 1000
		f := newFlood(t, 0)
		close(f.gate)
		f.begin(events)
		during := goroutines() // the one that sent them has ended, a few may have come alone already
		for n := range loneBatches {
			f.send(events+n+1, events+n+1)
			synctest.Wait()
		}
		assert.Equal(t, during-1, goroutines())
		f.send(events+loneBatches+1, events+loneBatches+1)
		assert.Equal(t, during-1, goroutines(), "an event alone is no flood")
		f.has(events + loneBatches + 1)
		f.cancel()
		<-f.done
	})
}

// The same for a source that falls silent, for which nothing counts events.
func TestNobodyReceivesAheadOfASilentSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 1000
		f := newFlood(t, 0)
		close(f.gate)
		f.begin(events)
		during := goroutines()
		sleep(floodQuiet)
		assert.Equal(t, during-1, goroutines())
		assert.False(t, f.inf.shared.log.busy)
		f.has(events)
		f.cancel()
		<-f.done
	})
}

// What was received ahead is applied when the watch ends, as what is in its channel would be.
// Fails if a part of it is dropped, or more is taken out of the channel than the watch's own.
func TestAWatchThatEndsInAFloodLosesNothing(t *testing.T) {
	const held, events = 200, 2000
	var gone *apierrors.StatusError
	require.ErrorAs(t, cachetest.ErrExpired(), &gone)
	for name, end := range map[string]func(*flood){
		"closes": func(f *flood) {
			f.send(f.before+1, events)
			ended := f.source.events
			f.source.events = make(chan watch.Event)
			close(ended)
		},
		"expires": func(f *flood) {
			f.send(f.before+1, held)
			f.source.events <- watch.Event{Type: watch.Error, Object: &gone.ErrStatus}
			f.source.version = held
			for n := range held {
				f.source.items = append(f.source.items, *podAt("a", itoa(n+1), itoa(n+1)))
			}
			f.send(held+1, events)
		},
		"is overdue": func(f *flood) { f.send(f.before+1, events) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlood(t, held)
				f.send(1, f.before)
				go end(f)
				f.run()
				synctest.Wait()
				if name == "is overdue" {
					sleep(time.Hour) // no watch is to last for so long
				}
				close(f.gate)
				sleep(time.Hour)
				f.has(events)
				f.cancel()
				<-f.done
			})
		})
	}
}

// An informer that is stopped in a flood applies nothing more, and leaves no goroutine.
func TestAnInformerStopsInTheMiddleOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const held = 200
		f := newFlood(t, held)
		f.send(1, f.before)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for n := f.before + 1; ; n++ {
				select {
				case f.source.events <- watch.Event{Type: watch.Added, Object: podAt("a", itoa(n), itoa(n))}:
				case <-ctx.Done():
					return
				}
			}
		}()
		f.run()
		synctest.Wait()
		f.cancel()
		close(f.gate)
		<-f.done
		assert.Less(t, f.inf.Len(), held, "of the batch that was being prepared nothing is written")
		cancel()
	})
}

// The error that ends a watch is that of the event which goes back in time, also where it
// was received ahead; what came before it is applied.
func TestAnEventInAFloodThatGoesBackInTimeEndsTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const held = 200
		f := newFlood(t, held)
		f.send(1, f.before)
		go func() {
			f.send(f.before+1, held+50)
			f.source.events <- watch.Event{Type: watch.Modified, Object: podAt("a", itoa(held+50), "7")}
		}()
		f.run()
		synctest.Wait()
		close(f.gate)
		synctest.Wait()
		assert.Equal(t, held+50, f.inf.Len())
		require.Len(t, f.heard.all(), 1)
		require.ErrorAs(t, f.heard.all()[0], new(*RegressionError))
		f.cancel()
		<-f.done
	})
}
