package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/etcd/server"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/etcd"
)

// connect returns a client for a configuration.
func connect(t *testing.T, config clientv3.Config) *clientv3.Client {
	t.Helper()
	config.Endpoints = []string{"http://" + shared.Addr()}
	config.Logger = zap.NewNop()
	client, err := clientv3.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// putMany puts keys with a value.
func (k *keys) putMany(t *testing.T, count int, value string) {
	t.Helper()
	var puts []clientv3.Op
	for i := range count {
		puts = append(puts, clientv3.OpPut(fmt.Sprintf("%skey-%04d", k.prefix, i), value))
		if len(puts) < 100 && i < count-1 {
			continue
		}
		_, err := k.client.Txn(t.Context()).Then(puts...).Commit()
		require.NoError(t, err)
		puts = nil
	}
}

func TestAListWhosePagesAreLargerThanTheClientAcceptsUsesSmallerOnes(t *testing.T) {
	t.Parallel()
	k := newKeys(t, shared.Addr(), etcd.Options{})
	k.putMany(t, 600, strings.Repeat("x", 10_000))
	client := connect(t, clientv3.Config{MaxCallRecvMsgSize: 2 << 20})
	k.source = etcd.NewSource(client, k.prefix, sources.Values(text), etcd.Options{})
	informer := k.informer(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, informer.WaitSynced(ctx))
	assert.Equal(t, 600, informer.Len())
	assert.Empty(t, informer.Status().Failures)
}

// pageTimeout is how long a page that hangs is waited for. Other pages may take longer.
const pageTimeout = 100 * time.Millisecond

// pageServer answers requests for pages that are larger than a limit with an error, or never.
type pageServer struct {
	mu    sync.Mutex
	limit int64
	hangs bool
	// sizes are those of the requested pages.
	sizes []int64
}

func (p *pageServer) intercept(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	request, isRange := req.(*pb.RangeRequest)
	if !isRange {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	p.mu.Lock()
	p.sizes = append(p.sizes, request.Limit)
	isTooLarge := request.Limit > p.limit
	hangs := p.hangs
	p.mu.Unlock()
	switch {
	case isTooLarge && hangs:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case isTooLarge:
		return status.Error(codes.ResourceExhausted, "grpc: received message larger than max")
	}
	// Only pages that hang may miss the deadline, also on a busy machine.
	unhurried, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return invoke(unhurried, method, req, reply, cc, opts...)
}

// set changes the limit and returns the sizes that were requested before.
func (p *pageServer) set(limit int64, hangs bool) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sizes := p.sizes
	p.sizes = nil
	p.limit = limit
	p.hangs = hangs
	return sizes
}

func TestPagesAreHalvedWhenTheyFailAndGrowAgain(t *testing.T) {
	t.Parallel()
	k := newKeys(t, shared.Addr(), etcd.Options{})
	k.putMany(t, 1000, "1")
	pages := &pageServer{}
	client := connect(t, clientv3.Config{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(pages.intercept)}})
	source := etcd.NewSource(client, k.prefix, sources.Values(text), etcd.Options{Timeout: pageTimeout})
	list := func() error {
		items, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		if err == nil {
			assert.Len(t, items.(*metav1.List).Items, 1000)
		}
		return err
	}
	pages.set(130, false)
	require.NoError(t, list())
	assert.Equal(t, []int64{500, 250, 125, 125, 125, 125, 125, 125, 125, 125}, pages.set(500, false))
	require.NoError(t, list(), "eight full pages were enough")
	assert.Equal(t, []int64{250, 250, 250, 250}, pages.set(500, false))
	require.NoError(t, list())
	assert.Equal(t, []int64{250, 250, 250, 250}, pages.set(500, false))
	require.NoError(t, list())
	assert.Equal(t, []int64{500, 500}, pages.set(1, true))

	// A server that is down must be reported: the first page is not requested again by the source.
	assert.Equal(t, cache.CauseUnavailable, cache.CauseOf(list()))
	assert.Equal(t, []int64{500}, pages.set(260, true))
	require.NoError(t, list())
	assert.Equal(t, []int64{250, 250, 250, 250}, pages.set(1, true))
	assert.Error(t, list())
	pages.set(130, true)
	require.NoError(t, list())
	assert.Equal(t, []int64{125, 125, 125, 125, 125, 125, 125, 125}, pages.set(130, true))
}

// A page that is too slow after others of its list is requested again, once.
func TestAPageThatIsTooSlowInTheMiddleOfAListFailsNoList(t *testing.T) {
	t.Parallel()
	k := newKeys(t, shared.Addr(), etcd.Options{})
	k.putMany(t, 1000, "1")
	pages := &pageServer{limit: 500}
	client := connect(t, clientv3.Config{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(pages.intercept)}})
	source := etcd.NewSource(client, k.prefix, sources.Values(text), etcd.Options{Timeout: pageTimeout})
	for _, test := range []struct {
		limit int64 // from the second page on
		want  []int64
		fails bool
	}{
		{250, []int64{500, 250, 250}, false},
		{249, []int64{500, 250}, true},
	} {
		pages.set(500, true)
		listed := 0
		_, err := source.ListItems(t.Context(), metav1.ListOptions{}, func(metav1.ListMeta, runtime.Object) error {
			listed++
			if listed == 500 {
				pages.set(test.limit, true)
			}
			return nil
		})
		assert.Equal(t, test.fails, err != nil, err)
		assert.Equal(t, test.want, pages.set(500, false))
		for range 8 {
			_, err := source.List(metav1.ListOptions{})
			require.NoError(t, err)
		}
	}
}

func TestAWrongPasswordIsUnauthorized(t *testing.T) {
	t.Parallel()
	s, err := server.Start(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	endpoints := []string{"http://" + s.Addr()}
	newClient := func(user, password string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Username: user, Password: password, Logger: zap.NewNop()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	ctx := t.Context()
	open := newClient("", "")
	for _, user := range []string{"root", "reader"} {
		_, err = open.UserAdd(ctx, user, "right")
		require.NoError(t, err)
		_, err = open.UserGrantRole(ctx, user, "root")
		require.NoError(t, err)
	}
	_, err = open.AuthEnable(ctx)
	require.NoError(t, err)
	reader := newClient("reader", "right")
	root := newClient("root", "right")
	informer := cache.NewTypedInformer(
		etcd.NewSource(reader, "keys/", sources.Values(text), etcd.Options{}),
		cache.InformerConfig[*entry]{ReflectorOptions: cache.ReflectorOptions{
			MinWatchTimeout: time.Second, MaxWatchTimeout: time.Second,
			ErrorHandler: func(context.Context, *cache.Reflector, error) {},
		}},
	)
	run, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(run) }()
	require.NoError(t, informer.WaitSynced(ctx))
	_, err = root.UserChangePassword(ctx, "reader", "another")
	require.NoError(t, err)
	refused := func() bool { return informer.Status().Failures[cache.CauseUnauthorized] > 0 }
	within(t, refused, "refused", func() any { return informer.Status() })
	cancel()
	require.NoError(t, <-ran)
	for _, client := range []*clientv3.Client{reader, open} {
		source := etcd.NewSource(client, "keys/", sources.Values(text), etcd.Options{})
		_, listErr := source.ListWithContext(ctx, metav1.ListOptions{})
		assert.Equal(t, cache.CauseUnauthorized, cache.CauseOf(listErr), listErr)
		_, watchErr := source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1"})
		assert.Equal(t, cache.CauseUnauthorized, cache.CauseOf(watchErr), watchErr)
	}
}
