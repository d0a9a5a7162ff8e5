package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A thousand changes in and out cost a slice for all of them or, popped, a slice and what
// holds it for each. Fails if the text of a key is made for nobody, if a batch makes a map, if a
// closure of Pop's is kept, or if a queue of this depth gives its memory back each time.
func TestWhatAQueueAllocatesForAThousandChanges(t *testing.T) {
	objects := make([]any, 1000)
	for i := range objects {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "namespace", Name: "small-" + itoa(i), UID: "uid", ResourceVersion: itoa(i + 1),
		}}
	}
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: MetaNamespaceKeyFunc, EmitDeltaTypeReplaced: true})
	put := func() {
		for _, obj := range objects {
			_ = f.Update(obj)
		}
	}
	batch := func([]Delta, bool) error { return nil }
	single := func(any, bool) error { return nil }
	for name, tc := range map[string]struct {
		take func()
		most float64
	}{
		"PopBatch": {func() { _ = f.PopBatch(batch, nil) }, 5},
		"Pop": {func() {
			for range objects {
				_, _ = f.Pop(single)
			}
		}, 2005},
	} {
		t.Run(name, func(t *testing.T) {
			assert.LessOrEqual(t, testing.AllocsPerRun(20, func() {
				put()
				tc.take()
			}), tc.most)
			require.Zero(t, f.log.pending)
		})
	}
}

// brittle is an object whose metadata may panic.
type brittle struct {
	metav1.ObjectMeta
	broken bool
}

func (b *brittle) GetNamespace() string {
	if b.broken {
		panic(errBoom)
	}
	return b.Namespace
}

// The usual key functions are not called, what they make is made with the rest. Fails if
// another one is taken for one of them, or if what has no key is not refused as by them.
func TestTheUsualKeysAreThoseOfTheFunction(t *testing.T) {
	assert.True(t, namesObjects(MetaNamespaceKeyFunc))
	assert.True(t, namesObjects(DeletionHandlingMetaNamespaceKeyFunc))
	assert.False(t, namesObjects(func(obj any) (string, error) { return MetaNamespaceKeyFunc(obj) }))
	for name, obj := range map[string]any{
		"an object":     podAt("a", "1", "1"),
		"no namespace":  podAt("", "1", "1"),
		"brittle":       &brittle{ObjectMeta: metav1.ObjectMeta{Name: "1"}},
		"broken":        &brittle{broken: true},
		"no name":       podAt("", "", "1"),
		"nil":           nil,
		"a nil pointer": (*object)(nil),
		"a key":         ExplicitKey("a/1"),
		"no metadata":   7,
		"a tombstone":   DeletedFinalStateUnknown{Key: "a/1", Obj: podAt("a", "1", "1")},
		"deltas":        Deltas{{Added, podAt("a", "1", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			usual := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
			other := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: func(obj any) (string, error) { return MetaNamespaceKeyFunc(obj) }})
			got, want := change{object: obj}, change{object: obj}
			got.says.read(obj)
			want.says.read(obj)
			err, wanted := usual.identify(&got), other.identify(&want)
			if wanted != nil {
				var panicked *PanicError
				assert.EqualError(t, err, wanted.Error())
				assert.Equal(t, errors.As(wanted, &panicked), errors.As(err, &panicked))
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}
