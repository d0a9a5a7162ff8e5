package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// What counts failures in a row begins anew with what goes well in between: otherwise
// two bad minutes that are a month apart would be answered as if they were one.

// B3: watches that break, each after it has moved the version, are resumed without a
// list, however many they are. Fails if they count as failures in a row.
func TestB3WatchesThatBringSomethingBeforeTheyBreakNeedNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.BreakNextWatches(cachetest.Forever, 1, apierrors.NewServiceUnavailable("later"))
		r := newRig(t, source, nil)
		r.run()
		for i := range 600 {
			_, err := source.Update(labelled(pod("a", "1"), itoa(i)))
			require.NoError(t, err)
			sleep(time.Second)
		}
		assert.Greater(t, r.heard.count(CauseUnavailable), 2*watchesBeforeList)
		assert.Equal(t, 1, source.ListCalls())
		source.Heal()
		sleep(time.Minute)
		r.equalsSource()
		r.stop()
	})
}

// B1: a streaming list that succeeds begins the count of attempts anew. Fails if one
// failure now and one the next time make a list.
func TestB1FailuresOfStreamsCountInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, stream)
		for i := range 5 {
			source.FailWatches(1, cachetest.ErrInternal())
			if i == 0 {
				r.run()
			} else {
				source.BreakWatches(cachetest.ErrExpired())
			}
			sleep(10 * time.Minute) // so that the pauses, too, begin anew
			assert.Equal(t, i+1, r.heard.count(CauseInternal))
			require.NoError(t, source.Apply(pod("b", itoa(i))))
		}
		sleep(time.Second)
		assert.Zero(t, source.ListCalls())
		r.equalsSource()
		r.stop()
	})
}

// B19: a stream is given the whole time of a watch once it has become one, however long
// it took to get there. Fails if the deadline counts from the request for the stream.
func TestB19AStreamIsAYoungWatchOnceItHasGivenTheFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := newProbe(), &heard{}
		source := &scripted{watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n == 1 {
				return p, nil
			}
			return newProbe(), nil
		}, list: func(metav1.ListOptions) (apiruntime.Object, error) { // a check of the version
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}}, nil
		}}
		stop := runReflector(t, NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{
			Strategy: ListStreaming, ErrorHandler: h.handle, MinWatchTimeout: time.Minute, MaxWatchTimeout: time.Minute,
		}))
		for i := range 20 {
			p.events <- watch.Event{Type: watch.Added, Object: podAt("a", itoa(i), itoa(i+1))}
			sleep(9 * time.Second)
		}
		p.events <- watch.Event{Type: watch.Bookmark, Object: &object{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "20", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}}
		sleep(time.Minute + watchGrace - time.Second)
		assert.Empty(t, h.all())
		sleep(2 * time.Second)
		assert.Equal(t, []Cause{CauseOverdueWatch}, h.causes())
		stop()
	})
}
