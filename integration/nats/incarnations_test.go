package integration_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/nats/server"
	"github.com/watchmirror/cache/internal/testproxy"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/nats"
)

// The messages of a mirror have the subjects of the mirrored bucket, so its list would be empty.
func TestAMirrorOfABucketIsRefused(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	require.NoError(t, b.put("a", "1"))
	name := b.kv.Bucket() + "-mirror"
	_, err := b.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket: name, Mirror: &jetstream.StreamSource{Name: b.kv.Bucket()},
	})
	require.NoError(t, err)
	source := nats.NewSource(b.js, name, sources.Values(text), nats.Options{})
	_, err = source.List(metav1.ListOptions{})
	require.True(t, apierrors.IsBadRequest(err), err)
	require.ErrorContains(t, err, "is a mirror")
}

func TestABucketWithSourcesIsMirrored(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	require.NoError(t, b.put("a", "1"))
	copied := bucket{js: b.js}
	var err error
	copied.kv, err = b.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket: b.kv.Bucket() + "-copy", Sources: []*jetstream.StreamSource{{Name: b.kv.Bucket()}},
	})
	require.NoError(t, err)
	copied.source = nats.NewSource(
		b.js, copied.kv.Bucket(), sources.Values(text), nats.Options{ProgressInterval: 50 * time.Millisecond})
	informer := copied.informer(t)
	value := func(key string) string {
		e, _ := informer.Lookup(key)
		if e == nil {
			return ""
		}
		return e.Value
	}
	within(t, func() bool { return value("a") == "1" }, "a", func() any { return informer.Status() })
	require.NoError(t, b.put("a", "2"))
	require.NoError(t, b.put("b", "1"))
	within(t, func() bool { return value("a") == "2" && value("b") == "1" }, "b", func() any { return informer.Status() })
	require.NoError(t, b.remove("a"))
	require.NoError(t, b.kv.Purge(t.Context(), "b"))
	within(t, func() bool { return informer.Len() == 0 }, "the deletions", func() any { return informer.Status() })
}

// consumers returns the number of consumers at the server.
func (b *bucket) consumers(t testing.TB) int {
	t.Helper()
	stream, err := b.js.Stream(t.Context(), "KV_"+b.kv.Bucket())
	require.NoError(t, err)
	names := stream.ConsumerNames(t.Context())
	count := 0
	for range names.Name() {
		count++
	}
	require.NoError(t, names.Err())
	return count
}

func TestReconnectsLeaveNoConsumersAtTheServer(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, shared.Addr())
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	mirror := *b
	mirror.source = nats.NewSource(connect(t, proxy.Addr), b.kv.Bucket(), sources.Values(text), nats.Options{})
	informer := mirror.informer(t)
	most := 0
	for i := range 5 {
		require.NoError(t, b.put(fmt.Sprint("key-", i%7), fmt.Sprint(i)))
		b.converges(t, informer)
		most = max(most, b.consumers(t))
		proxy.Cut()
	}
	require.NoError(t, b.put("last", "1"))
	b.converges(t, informer)
	t.Log("most", most, "now", b.consumers(t))
	assert.LessOrEqual(t, most, 2)
	within(t, func() bool { return b.consumers(t) == 1 }, "one consumer", func() any { return b.consumers(t) })
}

// The bucket is never silent.
func TestAKeyThatIsRemovedWithoutAMessageIsNoticedInABusyBucket(t *testing.T) {
	for name, filter := range map[string]string{"all keys": "", "a filter": "a.>"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := nats.Options{ProgressInterval: time.Second, Filter: filter}
			b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, options)
			for _, key := range []string{"a.1", "a.2", "a.busy"} {
				require.NoError(t, b.put(key, "1"))
			}
			informer := b.informer(t)
			require.NoError(t, informer.WaitSynced(t.Context()))
			require.NoError(t, b.put("a.busy", "watched"))
			b.converges(t, informer)
			ctx, cancel := context.WithCancel(t.Context())
			wrote := make(chan error, 1)
			go func() {
				for i := 0; ctx.Err() == nil; i++ {
					if err := b.put("a.busy", fmt.Sprint(i)); err != nil {
						wrote <- err
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				wrote <- nil
			}()
			b.purge(t, "a.1")
			began := time.Now()
			within(t, func() bool { return informer.Len() == 2 }, "the removal", func() any { return informer.Status() })
			assert.Less(t, time.Since(began), time.Minute)
			cancel()
			require.NoError(t, <-wrote)
			b.converges(t, informer)
		})
	}
}

// equals waits until an informer equals the bucket.
func (b *bucket) equals(t testing.TB, informer *cache.Informer[*entry]) {
	t.Helper()
	want := b.content(t)
	within(t,
		func() bool { return assert.ObjectsAreEqual(want, mirrored(informer)) },
		"the bucket's content",
		func() any { return fmt.Sprint(want, mirrored(informer), informer.Status()) })
}

// Both informers' watches end when the bucket is deleted. One lists the new bucket before the other
// watches again: at a version that the new bucket has reached.
func TestEachOfTwoInformersNoticesThatTheirBucketWasCreatedAgain(t *testing.T) {
	b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{}, nats.Options{})
	for i := range 5 {
		require.NoError(t, b.put(fmt.Sprint("old-", i), "1"))
	}
	list, err := b.source.List(metav1.ListOptions{})
	require.NoError(t, err)
	from := metav1.ListOptions{ResourceVersion: list.(*metav1.List).ResourceVersion}
	require.NoError(t, b.js.DeleteKeyValue(t.Context(), b.kv.Bucket()))
	_, err = b.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: b.kv.Bucket()})
	require.NoError(t, err)
	for i := range 4 {
		require.NoError(t, b.put(fmt.Sprint("new-", i), "1"))
	}
	_, err = b.source.Watch(from)
	require.Error(t, err)
	_, err = b.source.List(metav1.ListOptions{}) // of the other informer
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, b.put(fmt.Sprint("newer-", i), "1"))
	}
	_, err = b.source.Watch(from)
	require.True(t, apierrors.IsResourceExpired(err), err)
}

// The data of the server is an older copy, as after a crash that lost the last writes.
func TestAVersionOfABucketThatWentBackIsExpired(t *testing.T) {
	for name, written := range map[string]int{
		"behind the version": 0, "at the version": 3, "further than the version": 20,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, older := t.TempDir(), t.TempDir()
			s, err := server.Start(dir)
			require.NoError(t, err)
			defer func() { s.Stop() }()
			b := newBucket(t, s.Addr(), jetstream.KeyValueConfig{History: 5}, nats.Options{})
			restart := func(whileStopped func()) {
				s.Stop()
				isLost := func() bool { return !b.js.Conn().IsConnected() }
				within(t, isLost, "a lost connection", func() any { return b.js.Conn().Status() })
				whileStopped()
				require.NoError(t, s.Restart())
				within(t, b.js.Conn().IsConnected, "a connection", func() any { return b.js.Conn().Status() })
			}
			for i := range 5 {
				require.NoError(t, b.put(fmt.Sprint("key-", i), "1"))
			}
			restart(func() { require.NoError(t, os.CopyFS(older, os.DirFS(dir))) })
			require.NoError(t, b.put("key-0", "lost"))
			require.NoError(t, b.remove("key-1"))
			require.NoError(t, b.put("key-2", "lost"))
			list, err := b.source.List(metav1.ListOptions{})
			require.NoError(t, err)
			restart(func() {
				require.NoError(t, os.RemoveAll(dir))
				require.NoError(t, os.CopyFS(dir, os.DirFS(older)))
			})
			for i := range written {
				require.NoError(t, b.put("key-4", fmt.Sprint(i)))
			}
			version := list.(*metav1.List).ResourceVersion
			_, err = b.source.Watch(metav1.ListOptions{ResourceVersion: version})
			require.True(t, apierrors.IsResourceExpired(err), err)
			b.watch(t)
			b.converges(t, b.informer(t))
		})
	}
}

// The value before the last one is there again.
func TestAValueThatExpiresBeforeAnOlderOneIsNoticed(t *testing.T) {
	for name, headers := range map[string]natsgo.Header{
		"a value":    {},
		"a deletion": {"KV-Operation": {"DEL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := nats.Options{ProgressInterval: 100 * time.Millisecond, Timeout: time.Second}
			b := newBucket(t, shared.Addr(), jetstream.KeyValueConfig{History: 5, LimitMarkerTTL: time.Second}, options)
			require.NoError(t, b.put("a", "1"))
			require.NoError(t, b.put("b", "1"))
			informer := b.informer(t)
			b.converges(t, informer)
			message := natsgo.NewMsg("$KV." + b.kv.Bucket() + ".a")
			message.Header = headers
			message.Header.Set("Nats-TTL", "1s")
			message.Data = []byte("2")
			_, err := b.js.PublishMsg(t.Context(), message)
			require.NoError(t, err)
			within(t, func() bool { return b.content(t)["a"] == "1 at 1" }, "the older value", func() any { return b.content(t) })
			b.equals(t, informer)
		})
	}
}
