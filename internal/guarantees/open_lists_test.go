package guarantees

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// A queue whose first list was aborted has no open list. Fails if it then waits for one for ever.
func TestAQueueSyncsAfterAnAbortedList(t *testing.T) {
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	aborted, other := queue.BeginReplace(cache.ReplaceOptions{}), queue.BeginReplace(cache.ReplaceOptions{})
	aborted.Abort()
	aborted.Abort()
	must(t, queue.Add(podAt("a", "1", "1")))
	pop := func() {
		_, err := queue.Pop(func(any, bool) error { return nil })
		require.NoError(t, err)
	}
	pop()
	require.False(t, queue.HasSynced(), "another list is open")
	other.Abort()
	must(t, queue.Add(podAt("a", "2", "2")))
	pop()
	require.True(t, queue.HasSynced())
}

// refusingQueue embeds a queue and refuses some objects itself.
type refusingQueue struct{ *cache.DeltaFIFO }

func (q refusingQueue) Update(obj any) error {
	accessor, ok := obj.(metav1.Object)
	if ok && accessor.GetName() == "bad" {
		return &cache.ObjectError{Key: "a/bad", ResourceVersion: accessor.GetResourceVersion(), Stage: "transform", Err: errors.New("refused")}
	}
	return q.DeltaFIFO.Update(obj)
}

// Fails if the reflector takes the object for one that the embedded queue has quarantined.
func TestAnObjectThatATypeWithAQueueRefusesIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newSource(t, pod("a", "bad")), &errorRecorder{}
		queue := refusingQueue{cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})}
		reflector := cache.NewReflectorWithOptions(source, &object{}, queue, cache.ReflectorOptions{ErrorHandler: reported.handle})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() {
			reflector.RunWithContext(ctx)
			close(ended)
		}()
		synctest.Wait()
		changed := pod("a", "bad")
		changed.Labels = map[string]string{"changed": "yes"}
		require.NoError(t, source.Apply(changed))
		synctest.Wait()
		require.Len(t, reported.all(), 1)
		require.Len(t, reflector.Status().Quarantined, 1)
		require.Equal(t, "a/bad", reflector.Status().Quarantined[0].Key)
		cancel()
		<-ended
	})
}

// The first list of a Mirror is its handler's initial list, also if the store had a list before. Fails
// if a list of another writer counts.
func TestTheFirstListOfAMirrorIsInitialAlthoughItsStoreWasFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		must(t, store.Replace(items("old", "1"), "1"))
		initial := map[string]bool{}
		mirror := cache.New(&cache.Config{
			ListerWatcher: newSource(t, pod("a", "new")), ObjectType: &object{}, Store: store,
			Handler: cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj any, isInInitialList bool) {
				initial[nameOf(obj)] = isInInitialList
			}},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() {
			mirror.RunWithContext(ctx)
			close(ended)
		}()
		time.Sleep(time.Minute)
		require.True(t, mirror.HasSynced())
		require.Equal(t, map[string]bool{"a/old": true, "a/new": true}, initial)
		cancel()
		<-ended
	})
}
