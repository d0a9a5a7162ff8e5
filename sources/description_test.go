package sources_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sources"
)

func TestAPollingSourceOfUntypedObjectsIsDescribedByTheLineThatMadeIt(t *testing.T) {
	list := func(context.Context) ([]*unstructured.Unstructured, error) { return nil, nil }
	source := sources.NewPollingSource(list)
	status := cache.NewTypedInformer[*unstructured.Unstructured](source).Status()
	assert.Regexp(t, `^polled by sources/description_test\.go:\d+$`, status.TypeDescription)
	assert.Regexp(t, `^sources/description_test\.go:\d+$`, status.Source["polled by"])
	assert.Equal(t, "30s", status.Source["interval"])
}

// describedShelf describes itself.
type describedShelf struct{ sources.KeyValueStore }

func (describedShelf) TypeDescription() string { return "a shelf" }

func (describedShelf) SourceStatus() map[string]string { return map[string]string{"room": "2"} }

func TestASourceOfKeysIsDescribedByItsStore(t *testing.T) {
	decode := func(sources.KeyValue) (*metav1.PartialObjectMetadata, error) { return nil, nil }
	statusOf := func(store sources.KeyValueStore) cache.Status {
		source := sources.NewKeyValueSource(store, decode)
		return cache.NewTypedInformer[*metav1.PartialObjectMetadata](source).Status()
	}
	described := statusOf(describedShelf{})
	assert.Equal(t, "a shelf", described.TypeDescription)
	assert.Equal(t, map[string]string{"room": "2"}, described.Source)

	plain := statusOf(&shelf{})
	assert.Equal(t, "*v1.PartialObjectMetadata", plain.TypeDescription)
	assert.Empty(t, plain.Source)
}
