package integration_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
