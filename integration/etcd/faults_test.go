package integration_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/etcd/server"
	"github.com/watchmirror/cache/internal/testproxy"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/etcd"
)

// patience bounds the wait for an expected event.
const patience = 3 * time.Minute

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

func TestTheCacheEqualsTheKeysAfterARestartOfTheServer(t *testing.T) {
	t.Parallel() // etcd waits five seconds for open watches when it stops
	member, err := server.Start(t.TempDir())
	require.NoError(t, err)
	defer func() { member.Stop() }()
	k := newKeys(t, member.Addr(), etcd.Options{})
	for i := range 50 {
		require.NoError(t, k.put(fmt.Sprint("key-", i), "1"))
	}
	informer := k.informer(t)
	k.converges(t, informer)
	require.NoError(t, k.put("before", "1"))
	member.Stop()
	within(t, func() bool { return informer.Status().Failures[cache.CauseConnectionRefused] > 0 }, "a report of the outage", func() any { return informer.Status() })
	assert.GreaterOrEqual(t, informer.Len(), 50, "the content is kept")

	require.NoError(t, member.Restart())
	require.NoError(t, k.put("key-1", "2"))
	require.NoError(t, k.remove("key-2"))
	k.converges(t, informer)
	assert.NotContains(t, mirrored(informer), "key-2")
	assert.EqualValues(t, 50, informer.Status().LastList.Objects, "the watch was resumed, nothing was listed again")
}

func TestTheCacheEqualsTheKeysAfterAServerWasRestoredFromAnOlderCopy(t *testing.T) {
	t.Parallel() // etcd waits five seconds for open watches when it stops
	dir, older := t.TempDir(), t.TempDir()
	member, err := server.Start(dir)
	require.NoError(t, err)
	defer func() { member.Stop() }()
	k := newKeys(t, member.Addr(), etcd.Options{ProgressInterval: 100 * time.Millisecond})
	require.NoError(t, k.put("a", "1"))
	member.Stop()
	require.NoError(t, os.CopyFS(older, os.DirFS(dir)))
	require.NoError(t, member.Restart())
	require.NoError(t, k.put("a", "2"))
	require.NoError(t, k.put("b", "1"))
	informer := k.informer(t)
	k.converges(t, informer)

	member.Stop()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.CopyFS(dir, os.DirFS(older)))
	require.NoError(t, member.Restart())
	want := k.content(t)
	require.Len(t, want, 1)
	within(t, func() bool { return assert.ObjectsAreEqual(want, mirrored(informer)) }, "the older state", func() any { return informer.Status() })
}

func TestACutConnectionLosesNothing(t *testing.T) {
	proxy := testproxy.New(t, shared.Addr())
	k := newKeys(t, shared.Addr(), etcd.Options{})
	mirror := newKeys(t, proxy.Addr, etcd.Options{})
	mirror.source = etcd.NewSource(mirror.client, k.prefix, sources.Values(text), etcd.Options{})
	informer := mirror.informer(t)
	for i := range 40 {
		require.NoError(t, k.put(fmt.Sprint("key-", i%7), fmt.Sprint(i)))
		if i%10 == 5 {
			k.converges(t, informer)
			proxy.Cut()
		}
	}
	k.converges(t, informer)
}

// opened opens a watch. A busy machine may exceed a short timeout, so it tries again.
func opened(t testing.TB, source *sources.KeyValueSource[*entry], options metav1.ListOptions) (w watch.Interface) {
	t.Helper()
	var err error
	within(t, func() bool {
		w, err = source.WatchWithContext(t.Context(), options)
		return !apierrors.IsServiceUnavailable(err)
	}, "a watch", func() any { return err })
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

func TestAWatchWithoutProgressEnds(t *testing.T) {
	proxy := testproxy.New(t, shared.Addr())
	k := newKeys(t, proxy.Addr, etcd.Options{ProgressInterval: 50 * time.Millisecond, Timeout: 100 * time.Millisecond})
	put, err := k.client.Put(t.Context(), k.prefix+"a", "1")
	require.NoError(t, err)
	version := fmt.Sprint(put.Header.Revision)
	began := time.Now()
	w := opened(t, k.source, metav1.ListOptions{ResourceVersion: version})
	proxy.Freeze()
	event := <-w.ResultChan()
	require.Equal(t, watch.Error, event.Type)
	require.ErrorContains(t, apierrors.FromObject(event.Object), "no progress within 100ms of two requests")
	require.True(t, apierrors.IsServiceUnavailable(apierrors.FromObject(event.Object)))
	assert.GreaterOrEqual(t, time.Since(began), 250*time.Millisecond)

	_, err = k.source.List(metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), err)
	_, err = k.source.Watch(metav1.ListOptions{ResourceVersion: version})
	require.True(t, apierrors.IsServiceUnavailable(err), err)
	proxy.Thaw()
	informer := k.informer(t)
	k.converges(t, informer)
}

func TestAMemberDoesNotKnowTheTimeoutOfAWatch(t *testing.T) {
	var limited atomic.Int64
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + shared.Addr()}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(func(
			ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			if _, has := ctx.Deadline(); has {
				limited.Add(1)
			}
			return streamer(ctx, desc, cc, method, opts...)
		})},
	})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	source := etcd.NewSource(client, "test-timeout/", sources.Values(text), etcd.Options{})
	began := time.Now()
	w := opened(t, source, metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)})
	event, open := <-w.ResultChan()
	require.False(t, open, event)
	assert.GreaterOrEqual(t, time.Since(began), time.Second)
	assert.Zero(t, limited.Load())
}

func TestAListIsReadInPagesOfOneRevision(t *testing.T) {
	k := newKeys(t, shared.Addr(), etcd.Options{})
	var puts []clientv3.Op
	for i := range 1201 {
		puts = append(puts, clientv3.OpPut(fmt.Sprintf("%skey-%04d", k.prefix, i), "1"))
		if len(puts) == 100 || i == 1200 {
			_, err := k.client.Txn(t.Context()).Then(puts...).Commit()
			require.NoError(t, err)
			puts = nil
		}
	}
	_, err := k.client.Put(t.Context(), k.prefix, "a key that is the prefix is none of the source's")
	require.NoError(t, err)
	listed := map[string]bool{}
	about, err := k.source.ListItems(t.Context(), metav1.ListOptions{}, func(_ metav1.ListMeta, obj runtime.Object) error {
		e := obj.(*entry)
		if listed[e.Name] = true; len(listed) == 500 { // the next page is requested after this one
			return k.remove("key-1200")
		}
		return nil
	})
	require.NoError(t, err)
	assert.Len(t, listed, 1201)
	assert.Empty(t, about.Continue)

	count := 0
	options := metav1.ListOptions{Limit: 700}
	for {
		list, err := k.source.List(options)
		require.NoError(t, err)
		count += len(list.(*metav1.List).Items)
		if options.Continue = list.(*metav1.List).Continue; options.Continue == "" {
			break
		}
	}
	assert.Equal(t, 1200, count)
}

func TestTheChangesOfATransactionArriveAtOneVersionInTheirOrder(t *testing.T) {
	k := newKeys(t, shared.Addr(), etcd.Options{})
	require.NoError(t, k.put("n/a", "1"))
	informer := k.informer(t)
	k.converges(t, informer)
	var calls []string
	handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*entry]{
		AddFunc: func(e *entry) {
			calls = append(calls, "added "+e.Key+"="+e.Value+" "+fmt.Sprint(e.Created == e.Revision))
		},
		UpdateFunc: func(_, e *entry) { calls = append(calls, "updated "+e.Key+"="+e.Value) },
		DeleteFunc: func(e cache.DeletedObject[*entry]) {
			last, _ := e.Object()
			calls = append(calls, "deleted "+last.Key+"="+last.Value)
		},
	})
	require.NoError(t, err)
	answer, err := k.client.Txn(t.Context()).Then(
		clientv3.OpDelete(k.prefix+"n/a"), clientv3.OpPut(k.prefix+"n/b", "1"), clientv3.OpPut(k.prefix+"c", "1"),
	).Commit()
	require.NoError(t, err)
	require.NoError(t, k.put("n/a", "2")) // created again
	require.NoError(t, k.put("c", "damaged"))
	require.NoError(t, k.put("d", "1"))
	last, err := k.client.Put(t.Context(), k.prefix+"d", "2")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, informer.WaitForHandler(ctx, handle, fmt.Sprint(last.Header.Revision)))
	assert.Equal(t, []string{"added n/a=1 true", "deleted n/a=1", "added n/b=1 true", "added c=1 true", "added n/a=2 true", "added d=1 true", "updated d=2"}, calls)
	b, err := informer.Get("n/b")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprint(answer.Header.Revision), b.ResourceVersion)
	c, err := informer.Get("c")
	require.NoError(t, err)
	assert.Equal(t, "1", c.Value, "a value that cannot be decoded leaves the earlier one")
	assert.Len(t, informer.Status().Quarantined, 1)
	require.NoError(t, informer.Fresh(ctx))
	require.NoError(t, informer.Verify(ctx))
}
