package cache

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	informerPods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	informerNodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

func takeName(t *testing.T) *InformerName {
	t.Helper()
	name, err := NewInformerName(t.Name())
	require.NoError(t, err)
	t.Cleanup(name.Release)
	return name
}

func TestAnInformerNameIsTakenOnce(t *testing.T) {
	first := takeName(t)
	assert.Equal(t, t.Name(), first.Name())
	_, err := NewInformerName(t.Name())
	require.ErrorContains(t, err, t.Name())
	_, err = NewInformerName("")
	require.ErrorContains(t, err, "empty")

	first.Release()
	second := takeName(t)
	// The name is another's now. Fails if who releases does not look at whose it is.
	first.Release()
	_, err = NewInformerName(t.Name())
	require.Error(t, err)
	assert.True(t, second.WithResource(informerPods).Reserved())
}

func TestAResourceIsPublishedByOneInformerOfAName(t *testing.T) {
	out := captureKlog(t, 0)
	name := takeName(t)
	pods, nodes := name.WithResource(informerPods), name.WithResource(informerNodes)
	assert.True(t, pods.Reserved())
	assert.True(t, nodes.Reserved())
	assert.Empty(t, out.all())
	again := name.WithResource(informerPods)
	assert.False(t, again.Reserved())
	all := out.all()
	require.Len(t, all, 1)
	assert.Regexp(t, `^E.* informerName="`+t.Name()+`" resource="/v1, Resource=pods"$`, all[0])
	for _, identity := range []InformerNameAndResource{pods, again} {
		assert.Equal(t, t.Name(), identity.Name())
		assert.Equal(t, informerPods, identity.GroupVersionResource())
	}

	name.Release()
	late := name.WithResource(informerPods)
	for _, identity := range []InformerNameAndResource{pods, nodes, again, late} {
		assert.False(t, identity.Reserved(), "released")
		assert.Equal(t, t.Name(), identity.Name())
	}
	assert.Len(t, out.all(), 1, "late is no second")
}

func TestNoInformerNamePublishesNothing(t *testing.T) {
	var none *InformerName
	for _, name := range []*InformerName{none, {}} {
		assert.Empty(t, name.Name())
		identity := name.WithResource(informerPods)
		assert.False(t, identity.Reserved())
		assert.Equal(t, informerPods, identity.GroupVersionResource())
		name.Release()
	}
	assert.False(t, InformerNameAndResource{}.Reserved())
	assert.Zero(t, InformerNameAndResource{}.GroupVersionResource())
	assert.Empty(t, InformerNameAndResource{}.Name())
}

func TestInformerNamesMayBeUsedConcurrently(t *testing.T) {
	captureKlog(t, 0)
	name := takeName(t)
	var reserved, taken atomic.Int32
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if name.WithResource(informerPods).Reserved() {
				reserved.Add(1)
			}
			if other, err := NewInformerName(t.Name() + " too"); err == nil {
				taken.Add(1)
				t.Cleanup(other.Release)
			}
		})
	}
	running.Wait()
	assert.EqualValues(t, 1, reserved.Load())
	assert.EqualValues(t, 1, taken.Load())
}
