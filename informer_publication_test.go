package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// noticed is an object that says when it is copied: an informer that watches for changed
// objects does so between its write and its publication.
type noticed struct {
	object
	copied func()
}

func (n *noticed) DeepCopyObject() apiruntime.Object {
	if n.copied != nil {
		n.copied()
	}
	return &noticed{object: *n.object.DeepCopy(), copied: n.copied}
}

// newNoticing is an informer that calls written for each state that it has written and
// not yet published.
func newNoticing(source *cachetest.Source, written func()) *Informer[*noticed] {
	return NewInformerFor(source, InformerConfig[*noticed]{
		Convert: func(obj any) (*noticed, error) {
			return &noticed{object: *obj.(*object), copied: written}, nil
		},
		ObjectType:       &object{},
		DetectMutations:  MutationDetection{SampleEvery: 1, Period: 100 * time.Hour},
		ReflectorOptions: ReflectorOptions{ErrorHandler: (&heard{}).handle},
	})
}

func runNoticing(t *testing.T, inf *Informer[*noticed]) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	synctest.Wait()
	return func() { cancel(); assert.NoError(t, <-done) }
}

// G3: a handler that joins when a write can be read and has not been published yet is told
// of it once, by its snapshot. Fails if what the snapshot has is told again when it is
// published, or the snapshot is told after it.
func TestG3AHandlerThatJoinsBetweenAWriteAndItsPublicationIsToldOfItOnce(t *testing.T) {
	for _, event := range []string{"add", "update"} {
		t.Run(event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				late := newReplica(t)
				joins := false
				var inf *Informer[*noticed]
				inf = newNoticing(source, func() {
					if joins {
						joins = false
						_, err := inf.Shared().AddEventHandler(late)
						assert.NoError(t, err)
					}
				})
				stop := runNoticing(t, inf)
				joins = true
				if event == "add" {
					must(t, source.Apply(pod("a", "2")))
				} else {
					must(t, source.Apply(labelled(pod("a", "1"), "x")))
				}
				synctest.Wait()
				assert.False(t, joins)
				want := map[string][]string{"add": {"add a/1@1", "add a/2@2"}, "update": {"add a/1@2"}}[event]
				assert.ElementsMatch(t, want, late.take())
				must(t, source.Apply(pod("a", "3")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/3@3"}, late.take())
				late.equals(inf.Shared().GetStore())
				stop()
				source.Close()
			})
		})
	}
}

// G3: a handler whose resync is due when a write can be read and has not been published
// yet is told of that write first, and then not again for the resync.
func TestG3AResyncBetweenAWriteAndItsPublicationIsToldAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		slow := false
		inf := newNoticing(source, func() {
			if slow {
				time.Sleep(30 * time.Second)
			}
		})
		told, period := newReplica(t), time.Minute
		_, err := inf.Shared().AddEventHandlerWithOptions(told, HandlerOptions{ResyncPeriod: &period})
		must(t, err)
		stop := runNoticing(t, inf)
		sleep(50 * time.Second)
		told.take()
		slow = true
		must(t, source.Apply(labelled(pod("a", "1"), "x")))
		sleep(20 * time.Second) // the resync has become due, the write can be read
		assert.Empty(t, told.take())
		slow = false
		sleep(15 * time.Second)
		assert.Equal(t, []string{"update a/1@3", "resync a/2@2"}, told.take())
		told.equals(inf.Shared().GetStore())
		stop()
		source.Close()
	})
}
