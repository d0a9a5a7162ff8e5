package integration_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/nats/server"
	"github.com/watchmirror/cache/internal/testproxy"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/nats"
)

// within waits until a condition holds.
func within(t testing.TB, holds func() bool, what string, about func() any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, patience, about())
		}
	}
}

func TestTheCacheEqualsTheBucketAfterARestartOfTheServer(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.TempDir())
	require.NoError(t, err)
	defer func() { s.Stop() }()
	b := newBucket(t, s.Addr(), jetstream.KeyValueConfig{}, nats.Options{Timeout: time.Second})
	for i := range 50 {
		require.NoError(t, b.put(fmt.Sprint("key-", i), "1"))
	}
	informer := b.informer(t)
	b.converges(t, informer)
	s.Stop()
	within(t, func() bool { return informer.Status().Failures[cache.CauseConnectionRefused] > 0 }, "a report of the outage", func() any { return informer.Status() })
	assert.Len(t, mirrored(informer), 50, "the content is kept")

	require.NoError(t, s.Restart())
	within(t, b.js.Conn().IsConnected, "a connection", func() any { return b.js.Conn().Status() })
	require.NoError(t, b.put("key-1", "2"))
	require.NoError(t, b.remove("key-2"))
	b.converges(t, informer)
	assert.NotContains(t, mirrored(informer), "key-2")
	assert.EqualValues(t, 50, informer.Status().LastList.Objects, "the watch was resumed, nothing was listed again")
}

// The server restarts while nobody reads the watch, since a transform is slow. Fails if what the
// reader has missed meanwhile is not noticed once it reads again.
func TestARestartWhileATransformIsSlowLosesNothing(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.TempDir())
	require.NoError(t, err)
	defer func() { s.Stop() }()
	b := newBucket(t, s.Addr(), jetstream.KeyValueConfig{}, nats.Options{Timeout: time.Second})
	blocked := make(chan struct{})
	release := make(chan struct{})
	transform := func(e *entry) (*entry, error) {
		if e.Value == "slow" {
			close(blocked)
			<-release
		}
		return e, nil
	}
	informer := cache.NewTypedInformer(b.source, cache.InformerConfig[*entry]{Transform: transform})
	runUntilEnd(t, informer)
	require.NoError(t, informer.WaitSynced(t.Context()))

	require.NoError(t, b.put("one", "slow"))
	<-blocked
	for i := range 300 { // more than the client reads ahead
		require.NoError(t, b.put(fmt.Sprint("key-", i), "1"))
	}
	status := func() any { return b.js.Conn().Status() }
	isLost := func() bool { return !b.js.Conn().IsConnected() }
	s.Stop()
	within(t, isLost, "a lost connection", status)
	require.NoError(t, s.Restart())
	within(t, b.js.Conn().IsConnected, "a connection", status)
	require.NoError(t, b.put("key-1", "2"))
	require.NoError(t, b.remove("key-2"))
	close(release)
	b.converges(t, informer)
	assert.NotContains(t, mirrored(informer), "key-2")
}

func TestACutConnectionLosesNothing(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, shared.Addr())
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	mirror := *b
	mirror.source = nats.NewSource(connect(t, proxy.Addr), b.kv.Bucket(), sources.Values(text), nats.Options{})
	informer := mirror.informer(t)
	for i := range 40 {
		require.NoError(t, b.put(fmt.Sprint("key-", i%7), fmt.Sprint(i)))
		if i%10 == 5 {
			b.converges(t, informer)
			proxy.Cut()
		}
	}
	b.converges(t, informer)
}

func TestAWatchOfASilentConnectionEnds(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, shared.Addr())
	b := newBucket(t, proxy.Addr, jetstream.KeyValueConfig{}, nats.Options{Timeout: time.Second})
	require.NoError(t, b.put("a", "1"))
	var w watch.Interface
	var err error
	within(t, func() bool { // a busy machine may exceed the short timeout
		if w, err = b.listAndWatch(t); err != nil {
			require.True(t, apierrors.IsServiceUnavailable(err), err)
		}
		return err == nil
	}, "a watch", func() any { return err })
	proxy.Freeze()
	event := <-w.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.True(t, apierrors.IsServiceUnavailable(apierrors.FromObject(event.Object)))
	_, err = b.source.List(metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), err)
	proxy.Thaw()
	w.Stop()
	b.converges(t, b.informer(t))
}

// events reads that many events of a watch, written as "ADDED a=1".
func events(t testing.TB, w watch.Interface, count int) (texts []string) {
	t.Helper()
	for range count {
		select {
		case e := <-w.ResultChan():
			item, ok := e.Object.(*entry)
			require.True(t, ok, "%v", e.Object)
			texts = append(texts, string(e.Type)+" "+item.Key+"="+item.Value)
		case <-time.After(patience):
			t.Fatal("no event after ", texts)
		}
	}
	return texts
}

// listAndWatch opens a watch from the version of a list.
func (b *bucket) listAndWatch(t testing.TB) (watch.Interface, error) {
	list, err := b.source.List(metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return b.source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: list.(*metav1.List).ResourceVersion})
}

func (b *bucket) watch(t testing.TB) watch.Interface {
	t.Helper()
	w, err := b.listAndWatch(t)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

func TestADeletionHasTheLastValueWithoutAHistory(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	require.NoError(t, b.put("a", "1"))
	require.NoError(t, b.put("b", "1"))
	w, other := b.watch(t), b.watch(t)
	require.NoError(t, b.put("a", "2"))
	assert.Equal(t, []string{"MODIFIED a=2"}, events(t, w, 1))
	require.NoError(t, b.remove("a"))
	assert.Equal(t, []string{"DELETED a=2"}, events(t, w, 1)) // before the next value replaces the deletion marker
	require.NoError(t, b.remove("a"))                         // deletes nothing
	require.NoError(t, b.remove("another"))                   // neither
	require.NoError(t, b.kv.Purge(t.Context(), "b"))
	require.NoError(t, b.put("a", "3"))
	assert.Equal(t, []string{"DELETED b=1", "ADDED a=3"}, events(t, w, 2))
	for last := ""; last != "ADDED a=3" && last != "MODIFIED a=3"; last = events(t, other, 1)[0] {
		assert.NotEqual(t, "DELETED another=", last)
	}
}

func TestAnotherWatchThatIsBehindReceivesTheLastValueToo(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{History: 10}, nats.Options{})
	require.NoError(t, b.put("a", "1"))
	ahead, behind := b.watch(t), b.watch(t)
	require.NoError(t, b.put("a", "2"))
	require.NoError(t, b.remove("a"))
	require.NoError(t, b.put("a", "3"))
	require.NoError(t, b.put("a", "4"))
	want := []string{"MODIFIED a=2", "DELETED a=2", "ADDED a=3", "MODIFIED a=4"}
	assert.Equal(t, want, events(t, ahead, 4))
	assert.Equal(t, []string{"DELETED a=2", "ADDED a=3", "MODIFIED a=4"}, events(t, behind, 4)[1:])
}

func TestAListHasEveryKeyWhileAllAreOverwritten(t *testing.T) {
	const keys = 20
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	for i := range keys {
		require.NoError(t, b.put(fmt.Sprint("key-", i), "0"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	wrote := make(chan error, 1)
	go func() {
		for n := 1; ctx.Err() == nil; n++ {
			if err := b.put(fmt.Sprint("key-", n%keys), fmt.Sprint(n)); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	informer := b.informer(t)
	require.NoError(t, informer.WaitSynced(ctx))
	for range 30 {
		list, err := b.source.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, keys, len(list.(*metav1.List).Items))
		assert.Equal(t, keys, informer.Len())
	}
	cancel()
	require.NoError(t, <-wrote)
	b.converges(t, informer)
	assert.Nil(t, informer.Status().LastFailure)
	assert.NoError(t, informer.Verify(t.Context()))
}

// purge removes the messages of a key without a mark of its deletion.
func (b *bucket) purge(t *testing.T, key string) {
	t.Helper()
	stream, err := b.js.Stream(t.Context(), "KV_"+b.kv.Bucket())
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+b.kv.Bucket()+"."+key)))
}

// The stream also has keys that the filter omits, or marks of deleted keys, so that its numbers
// show no removal.
func TestKeysThatAreRemovedWithoutAMessageAreNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		filter  string
		deleted []string
	}{
		"all keys":                  {},
		"a filter":                  {filter: "a.>"},
		"marks of deletions":        {deleted: []string{"b.1", "b.2"}},
		"a filter and marks inside": {filter: "a.>", deleted: []string{"a.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := nats.Options{ProgressInterval: 50 * time.Millisecond, Filter: test.filter}
			b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, options)
			for _, key := range []string{"a.1", "a.2", "a.3", "a.4", "b.1", "b.2"} {
				require.NoError(t, b.put(key, "1"))
			}
			for _, key := range test.deleted {
				require.NoError(t, b.remove(key))
			}
			informer := b.informer(t)
			require.NoError(t, informer.WaitSynced(t.Context()))
			want := informer.Len()
			for _, key := range []string{"a.2", "a.3"} {
				b.purge(t, key)
				want--
				within(t, func() bool { return informer.Len() == want }, "the removal", func() any { return informer.Status() })
			}
			require.NoError(t, b.put("a.5", "1"))
			within(t, func() bool { return informer.Len() == want+1 }, "the addition", func() any { return informer.Status() })
			b.purge(t, "a.5")
			within(t, func() bool { return informer.Len() == want }, "the removal", func() any { return informer.Status() })
		})
	}
}

func TestABucketThatIsCreatedAgainIsListed(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{ProgressInterval: 50 * time.Millisecond, Timeout: time.Second})
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, b.put(key, "1"))
	}
	informer := b.informer(t)
	b.converges(t, informer)
	require.NoError(t, b.js.DeleteKeyValue(t.Context(), b.kv.Bucket()))
	_, err := b.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: b.kv.Bucket()})
	require.NoError(t, err)
	for i := range 6 {
		require.NoError(t, b.put("d", fmt.Sprint(i)))
	}
	want := b.content(t)
	within(t, func() bool { return assert.ObjectsAreEqual(want, mirrored(informer)) }, "the new content", func() any { return informer.Status() })
}

func TestAVersionIsExpiredOnceADeletionBehindItIsForgotten(t *testing.T) {
	for name, purge := range map[string]func(b *bucket) error{
		"marks of deletions": func(b *bucket) error {
			return b.kv.PurgeDeletes(context.Background(), jetstream.DeleteMarkersOlderThan(-1))
		},
		"a key": func(b *bucket) error {
			stream, err := b.js.Stream(context.Background(), "KV_"+b.kv.Bucket())
			if err != nil {
				return err
			}
			return stream.Purge(context.Background(), jetstream.WithPurgeSubject("$KV."+b.kv.Bucket()+".b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{History: 10}, nats.Options{})
			for _, key := range []string{"a", "b", "c"} {
				require.NoError(t, b.put(key, "1"))
			}
			list, err := b.source.List(metav1.ListOptions{})
			require.NoError(t, err)
			from := metav1.ListOptions{ResourceVersion: list.(*metav1.List).ResourceVersion}
			require.NoError(t, b.remove("b"))
			w, err := b.source.Watch(from)
			require.NoError(t, err, "the deletion is there")
			assert.Equal(t, []string{"DELETED b=1"}, events(t, w, 1))
			w.Stop()
			require.NoError(t, purge(b))
			_, err = b.source.Watch(from)
			require.True(t, apierrors.IsResourceExpired(err), err)
			w, err = b.source.Watch(metav1.ListOptions{ResourceVersion: "4"})
			require.NoError(t, err, "the watch that has received it continues")
			w.Stop()
			_, err = nats.NewSource(b.js, b.kv.Bucket(), sources.Values(text), nats.Options{}).Watch(from)
			require.True(t, apierrors.IsResourceExpired(err), "a source that has not listed knows nothing: %v", err)
		})
	}
}

func TestABucketWhoseKeysVanishIsRefused(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{TTL: time.Hour}, nats.Options{})
	_, err := b.source.List(metav1.ListOptions{})
	require.True(t, apierrors.IsBadRequest(err), err)
	require.ErrorContains(t, err, "has a TTL without LimitMarkerTTL")
	_, err = b.source.Watch(metav1.ListOptions{ResourceVersion: "1"})
	require.True(t, apierrors.IsBadRequest(err), err)

	_, err = b.js.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "KV_" + b.kv.Bucket(), Subjects: []string{"$KV." + b.kv.Bucket() + ".>"}, MaxMsgsPerSubject: 1,
		AllowDirect: true, AllowRollup: true, DenyDelete: true, Discard: jetstream.DiscardNew, AllowMsgTTL: true,
	})
	require.NoError(t, err)
	_, err = b.source.List(metav1.ListOptions{})
	require.True(t, apierrors.IsBadRequest(err), err)
	require.ErrorContains(t, err, "allows keys with a TTL without LimitMarkerTTL")

	missing := nats.NewSource(b.js, "missing", sources.Values(text), nats.Options{})
	_, err = missing.List(metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), err)
	_, err = missing.Watch(metav1.ListOptions{ResourceVersion: "1"})
	require.True(t, apierrors.IsNotFound(err), err)
}

func TestAnExpiredKeyIsADeletionWithItsLastValue(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{LimitMarkerTTL: time.Minute}, nats.Options{})
	w := b.watch(t)
	require.NoError(t, b.put("a", "1"))
	assert.Equal(t, []string{"ADDED a=1"}, events(t, w, 1))
	_, err := b.js.Publish(t.Context(), "$KV."+b.kv.Bucket()+".a", []byte("1"), jetstream.WithMsgTTL(time.Second))
	require.NoError(t, err)
	got := events(t, w, 1)
	if got[0] == "MODIFIED a=1" { // unless the key expired before the watch received its last value
		got = events(t, w, 1)
	}
	assert.Equal(t, []string{"DELETED a=1"}, got)
}

func TestAFilterLimitsTheSource(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	require.NoError(t, b.put("r1.m1", "1"))
	b.source = nats.NewSource(b.js, b.kv.Bucket(), sources.Values(text), nats.Options{Filter: "r2.>", ProgressInterval: 50 * time.Millisecond})
	informer := b.informer(t)
	require.NoError(t, informer.WaitSynced(t.Context()))
	assert.Zero(t, informer.Len())
	require.NoError(t, b.put("r2.m1", "1"))
	require.NoError(t, b.put("r2.m2", "damaged"))
	require.NoError(t, b.put("r1.m1", "2"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, informer.WaitForResourceVersion(ctx, "4"), "a bookmark has the version of other keys")
	assert.Equal(t, map[string]string{"r2.m1": "1 at 2"}, mirrored(informer))
	assert.Len(t, informer.Status().Quarantined, 1)
	assert.Equal(t, cache.Cause("invalid-object"), cache.CauseOf(informer.Status().LastFailure.Err))
}

func TestABucketInWhichNothingWasWrittenIsMirrored(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	informer := b.informer(t)
	require.NoError(t, informer.WaitSynced(t.Context()))
	require.NoError(t, b.put("n/a", "1"))
	b.converges(t, informer)
	assert.Equal(t, 1, informer.ByNamespace("n").Len())
}
