package cache

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// sharedChannel is a watch that goes on where the one before it was ended.
type sharedChannel chan watch.Event

func (c sharedChannel) ResultChan() <-chan watch.Event { return c }

func (sharedChannel) Stop() {}

// An error ends a watch, and what comes after it in the channel is the next watch's. Fails if
// events that are there are taken out of the channel and then left, which nobody would hear
// of again.
func TestWhatFollowsAnErrorIsLeftToTheNextWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(sharedChannel, 3)
		events <- watch.Event{Type: watch.Added, Object: podAt("a", "1", "2")}
		var gone *apierrors.StatusError
		require.ErrorAs(t, cachetest.ErrExpired(), &gone)
		events <- watch.Event{Type: watch.Error, Object: &gone.ErrStatus}
		events <- watch.Event{Type: watch.Added, Object: podAt("a", "2", "3")}
		lists := 0
		source := &ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				lists++
				list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(lists)}}
				if lists > 1 {
					list.Items = append(list.Items, *podAt("a", "1", "2"))
				}
				return list, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
		}
		inf := NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, Indexers{})
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			inf.Run(stop)
		}()
		sleep(healthy)
		assert.Equal(t, 2, lists)
		assert.ElementsMatch(t, []string{"a/1", "a/2"}, inf.GetStore().ListKeys())
		close(stop)
		<-done
	})
}
