package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/integration/nats/server"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/nats"
)

type entry = sources.Entry[string]

// text decodes a value. "damaged" cannot be decoded.
func text(value []byte) (string, error) {
	if string(value) == "damaged" {
		return "", errors.New("it is damaged")
	}
	return string(value), nil
}

// patience bounds the wait for an expected event.
const patience = 3 * time.Minute

// shared is the server of tests that do not stop it. Each has its own bucket.
var (
	shared  *server.Server
	buckets atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = server.Start(dir); err != nil {
		panic(err)
	}
	defer shared.Stop()
	return m.Run()
}

// bucket is a bucket and its source.
type bucket struct {
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	source *sources.KeyValueSource[*entry]
}

func connect(t testing.TB, addr string) jetstream.JetStream {
	t.Helper()
	js, err := server.Connect(addr)
	require.NoError(t, err)
	t.Cleanup(js.Conn().Close)
	return js
}

func newBucket(t testing.TB, addr string, config jetstream.KeyValueConfig, options nats.Options) *bucket {
	t.Helper()
	js := connect(t, addr)
	config.Bucket = fmt.Sprint("test-", buckets.Add(1))
	kv, err := js.CreateKeyValue(t.Context(), config)
	require.NoError(t, err)
	return &bucket{js: js, kv: kv, source: nats.NewSource(js, config.Bucket, sources.Values(text), options)}
}

func (b *bucket) put(key, value string) error {
	_, err := b.kv.Put(context.Background(), key, []byte(value))
	return err
}

func (b *bucket) remove(key string) error { return b.kv.Delete(context.Background(), key) }

// compact writes every key again, with a history of one value, and removes the deletion markers.
func (b *bucket) compact() error {
	ctx := context.Background()
	stream, err := b.js.Stream(ctx, "KV_"+b.kv.Bucket())
	if err != nil {
		return err
	}
	before := stream.CachedInfo().State.LastSeq
	keys, err := b.kv.Keys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return err
	}
	for _, key := range keys {
		value, err := b.kv.Get(ctx, key)
		if err == nil {
			_, err = b.kv.Put(ctx, key, value.Value())
		}
		if err != nil {
			return err
		}
	}
	return stream.Purge(ctx, jetstream.WithPurgeSequence(before+1))
}

// content returns the bucket's content on the server: value and revision by key.
func (b *bucket) content(t testing.TB) map[string]string {
	t.Helper()
	content := map[string]string{}
	all, err := b.kv.WatchAll(t.Context(), jetstream.IgnoreDeletes())
	require.NoError(t, err)
	defer func() { _ = all.Stop() }()
	for e := range all.Updates() {
		if e == nil {
			break
		}
		content[e.Key()] = fmt.Sprintf("%s at %d", e.Value(), e.Revision())
	}
	return content
}

func mirrored(informer *cache.Informer[*entry]) map[string]string {
	content := map[string]string{}
	for key, e := range informer.All() {
		content[key] = fmt.Sprintf("%s at %s", e.Value, e.ResourceVersion)
	}
	return content
}

// informer runs an informer of the source until the end of the test.
func (b *bucket) informer(t testing.TB) *cache.Informer[*entry] {
	t.Helper()
	informer := cache.NewTypedInformer(b.source, cache.InformerConfig[*entry]{})
	runUntilEnd(t, informer)
	return informer
}

// runUntilEnd runs an informer until the end of the test.
func runUntilEnd(t testing.TB, informer *cache.Informer[*entry]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ran)
	})
}

// last returns the bucket's last revision.
func (b *bucket) last(t testing.TB) uint64 {
	t.Helper()
	stream, err := b.js.Stream(t.Context(), "KV_"+b.kv.Bucket())
	require.NoError(t, err)
	return stream.CachedInfo().State.LastSeq
}

// converges waits until an informer has all writes made before the call, and compares it with the
// bucket.
func (b *bucket) converges(t testing.TB, informer *cache.Informer[*entry]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, informer.WaitForResourceVersion(ctx, fmt.Sprint(b.last(t))), informer.Status())
	require.Equal(t, b.content(t), mirrored(informer))
}

// labelled decodes a value written by labelledBucket: "mark" or "mark label".
func labelled(kv sources.KeyValue) (*entry, error) {
	mark, label, hasLabel := strings.Cut(string(kv.Value), " ")
	e := &entry{Key: kv.Key, Value: mark, Created: kv.Created, Revision: kv.Revision}
	if hasLabel {
		e.Labels = map[string]string{conformance.SelectedLabel: label}
	}
	return e, nil
}

// labelledBucket writes the values that labelled decodes.
type labelledBucket struct{ *bucket }

// value returns the mark and the label of a key.
func (b labelledBucket) value(key string) (mark, label string, err error) {
	have, err := b.kv.Get(context.Background(), key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	mark, label, _ = strings.Cut(string(have.Value()), " ")
	return mark, label, nil
}

func (b labelledBucket) setMark(key, mark string) error {
	_, label, err := b.value(key)
	if err != nil {
		return err
	}
	return b.put(key, mark+" "+label)
}

func (b labelledBucket) setLabel(key, label string) error {
	mark, _, err := b.value(key)
	if err != nil {
		return err
	}
	return b.put(key, mark+" "+label)
}

func valueOf(obj runtime.Object) string { return obj.(*entry).Value }

func TestABucketKeepsThePromisesOfAListerWatcher(t *testing.T) {
	for name, config := range map[string]jetstream.KeyValueConfig{
		"history": {History: 64}, "a long history in memory": {History: 64, Storage: jetstream.MemoryStorage},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
				Mark: valueOf, Patience: patience,
				New: func(t testing.TB) conformance.ListerWatcherRig {
					options := nats.Options{ProgressInterval: 20 * time.Millisecond}
					b := labelledBucket{newBucket(t, shared.Addr(), config, options)}
					return conformance.ListerWatcherRig{
						Source:        nats.NewSource(b.js, b.kv.Bucket(), labelled, options),
						Create:        b.setMark,
						Update:        b.setMark,
						Label:         b.setLabel,
						Delete:        b.remove,
						Compact:       b.compact,
						SendBookmarks: func() error { return nil }, // watches send them
					}
				},
			})
		})
	}
}
