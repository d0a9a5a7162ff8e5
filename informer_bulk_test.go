package cache

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

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
