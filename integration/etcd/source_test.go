package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/integration/etcd/server"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/etcd"
)

type entry = sources.Entry[string]

// text decodes a value. "damaged" cannot be decoded, and "panic" makes decode panic.
func text(value []byte) (string, error) {
	switch string(value) {
	case "damaged":
		return "", errors.New("it is damaged")
	case "panic":
		panic("unexpected")
	}
	return string(value), nil
}

// shared is the server of tests that do not stop it. Each has its own prefix.
var (
	shared   sharedServer
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	shared.dir = dir
	defer shared.stop()
	return m.Run()
}

// sharedServer starts with its first use: M.Run replaces os.Stderr for go test -json, which etcd
// reads as it starts.
type sharedServer struct {
	dir    string
	once   sync.Once
	server *server.Server
}

func (s *sharedServer) Addr() string {
	s.once.Do(func() {
		started, err := server.Start(s.dir)
		if err != nil {
			panic(err)
		}
		s.server = started
	})
	return s.server.Addr()
}

func (s *sharedServer) stop() {
	if s.server != nil {
		s.server.Stop()
	}
}

// keys is a prefix on a server, and its source.
type keys struct {
	client *clientv3.Client
	prefix string
	source *sources.KeyValueSource[*entry]
}

func newKeys(t testing.TB, addr string, options etcd.Options) *keys {
	t.Helper()
	client, err := server.Client(addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	k := &keys{client: client, prefix: fmt.Sprintf("test-%d/", prefixes.Add(1))}
	k.source = etcd.NewSource(client, k.prefix, sources.Values(text), options)
	return k
}

func (k *keys) put(name, value string) error {
	_, err := k.client.Put(context.Background(), k.prefix+name, value)
	return err
}

func (k *keys) remove(name string) error {
	_, err := k.client.Delete(context.Background(), k.prefix+name)
	return err
}

// compact removes all revisions but the newest.
func (k *keys) compact() error {
	page, err := k.client.Get(context.Background(), k.prefix)
	if err == nil {
		_, err = k.client.Compact(context.Background(), page.Header.Revision)
	}
	return err
}

// content returns the prefix's content in the cluster: value and revisions by key.
func (k *keys) content(t testing.TB) map[string]string {
	t.Helper()
	page, err := k.client.Get(t.Context(), k.prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	content := map[string]string{}
	for _, kv := range page.Kvs {
		name := strings.TrimPrefix(string(kv.Key), k.prefix)
		content[name] = fmt.Sprintf("%s at %d of %d", kv.Value, kv.ModRevision, kv.CreateRevision)
	}
	return content
}

// informer runs an informer of the source until the end of the test.
func (k *keys) informer(t testing.TB) *cache.Informer[*entry] {
	t.Helper()
	informer := cache.NewTypedInformer(k.source, cache.InformerConfig[*entry]{})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ran)
	})
	return informer
}

// mirrored returns the content of an informer in the form of content.
func mirrored(informer *cache.Informer[*entry]) map[string]string {
	content := map[string]string{}
	for key, e := range informer.All() {
		content[key] = fmt.Sprintf("%s at %s of %d", e.Value, e.ResourceVersion, e.Created)
	}
	return content
}

// converges waits until an informer has all writes made before the call, and compares it with the
// cluster.
func (k *keys) converges(t testing.TB, informer *cache.Informer[*entry]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	page, err := k.client.Get(ctx, k.prefix)
	require.NoError(t, err)
	require.NoError(t, informer.WaitForResourceVersion(ctx, fmt.Sprint(page.Header.Revision)), informer.Status())
	require.Equal(t, k.content(t), mirrored(informer))
}

// labelled decodes a value written by labelledKeys: "mark" or "mark label".
func labelled(kv sources.KeyValue) (*entry, error) {
	mark, label, hasLabel := strings.Cut(string(kv.Value), " ")
	e := &entry{Key: kv.Key, Value: mark, Created: kv.Created, Revision: kv.Revision}
	if hasLabel {
		e.Labels = map[string]string{conformance.SelectedLabel: label}
	}
	return e, nil
}

// labelledKeys writes the values that labelled decodes.
type labelledKeys struct{ *keys }

// value returns the mark and the label of a key.
func (k labelledKeys) value(name string) (mark, label string, err error) {
	page, err := k.client.Get(context.Background(), k.prefix+name)
	if err != nil || len(page.Kvs) == 0 {
		return "", "", err
	}
	mark, label, _ = strings.Cut(string(page.Kvs[0].Value), " ")
	return mark, label, nil
}

func (k labelledKeys) setMark(name, mark string) error {
	_, label, err := k.value(name)
	if err != nil {
		return err
	}
	return k.put(name, mark+" "+label)
}

func (k labelledKeys) setLabel(name, label string) error {
	mark, _, err := k.value(name)
	if err != nil {
		return err
	}
	return k.put(name, mark+" "+label)
}

func valueOf(obj runtime.Object) string { return obj.(*entry).Value }

func TestASourceOfKeysKeepsThePromisesOfAListerWatcher(t *testing.T) {
	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
		Mark: valueOf, Patience: patience,
		New: func(t testing.TB) conformance.ListerWatcherRig {
			options := etcd.Options{ProgressInterval: 20 * time.Millisecond}
			k := labelledKeys{newKeys(t, shared.Addr(), options)}
			return conformance.ListerWatcherRig{
				Source:        etcd.NewSource(k.client, k.prefix, labelled, options),
				Create:        k.setMark,
				Update:        k.setMark,
				Label:         k.setLabel,
				Delete:        k.remove,
				Compact:       k.compact,
				SendBookmarks: func() error { return nil }, // watches request them
			}
		},
	})
}
