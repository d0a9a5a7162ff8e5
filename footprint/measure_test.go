package footprint_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/footprint"
)

// thing is a stored value of any form.
type thing struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func thingKey(object any) (string, error) { return object.(*thing).Key, nil }

// measureThings measures a store of things with these values.
func measureThings(t *testing.T, values ...any) *footprint.Report {
	store := cache.NewIndexer(thingKey, nil)
	for i, value := range values {
		require.NoError(t, store.Add(&thing{Key: fmt.Sprint("thing-number-", i), Value: value}))
	}
	report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: footprint.Whole})
	require.NoError(t, err)
	return report
}

func bytesOf(report *footprint.Report, path string) int64 {
	field, _ := report.Field(path)
	return field.Bytes
}

const mebibyte = 1 << 20

func TestSharedMemoryIsCountedOnce(t *testing.T) {
	text := strings.Repeat("x", mebibyte)
	shared := map[string]any{
		"text":   text,
		"part":   &text,
		"bytes":  &[]byte{1: 1},
		"nested": map[string]string{"a": text},
	}
	alone := measureThings(t, shared)
	assert.InEpsilon(t, mebibyte, alone.Bytes, 0.01, "several references in one object")
	assert.InEpsilon(t, mebibyte, measureThings(t, shared, shared, text, &text).Bytes, 0.01)
	other := strings.Clone(text)
	assert.InEpsilon(t, 2*mebibyte, measureThings(t, shared, other).Bytes, 0.01)
}

func TestTheKeysOfMapsAreCounted(t *testing.T) {
	for _, value := range []any{
		map[string]any{strings.Repeat("k", mebibyte): nil},
		map[string]string{strings.Repeat("k", mebibyte): ""},
		map[string]bool{strings.Repeat("k", mebibyte): true},
		map[[1]string]bool{{strings.Repeat("k", mebibyte)}: true},
	} {
		assert.InEpsilon(t, mebibyte, measureThings(t, value).Bytes, 0.01, "%T", value)
	}
}

// Fails if what one object refers to twice counts as shared with others.
func TestASampleCountsWhatAnObjectRefersToTwiceForEachObject(t *testing.T) {
	store := cache.NewIndexer(thingKey, nil)
	for i := range 1000 {
		own := strings.Repeat("y", 1024)
		value := map[string]any{"own": own, "again": own}
		require.NoError(t, store.Add(&thing{Key: fmt.Sprint("thing-number-", i), Value: value}))
	}
	report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: 50})
	require.NoError(t, err)
	sum := bytesOf(report, "value.own") + bytesOf(report, "value.again")
	assert.InEpsilon(t, 1000*1024, sum, 0.1)
}

// Fails if what is shared is multiplied by the number of objects that are not measured.
func TestASampleCountsWhatItsObjectsShareOnce(t *testing.T) {
	shared := map[string]any{"large": strings.Repeat("x", mebibyte)}
	store := cache.NewIndexer(thingKey, nil)
	for i := range 1000 {
		own := strings.Repeat("y", 1024)
		value := map[string]any{"shared": shared, "own": own}
		require.NoError(t, store.Add(&thing{Key: fmt.Sprint("thing-number-", i), Value: value}))
	}
	report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: 50})
	require.NoError(t, err)
	assert.Equal(t, 50, report.Sampled)
	assert.InEpsilon(t, mebibyte, bytesOf(report, "value.shared.large"), 0.1)
	assert.InEpsilon(t, 1000*1024, bytesOf(report, "value.own"), 0.1)
}

func TestFieldsHaveTheSamePathsInTypedAndUnstructuredObjects(t *testing.T) {
	for name, decode := range decoders {
		store, _ := storeOf(t, 20, decode)
		report, err := footprint.Measure(t.Context(), store)
		require.NoError(t, err)
		paths := []string{
			"metadata",
			"metadata.labels.app",
			"metadata.managedFields",
			"metadata.managedFields[*].fieldsV1",
			`metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`,
			"metadata.ownerReferences[*].uid",
		}
		if name != "metadata" {
			paths = append(paths, "spec.containers", "spec.containers[*].env",
				"spec.containers[*].env[*].value", "spec.containers[*].args",
				"spec.containers[*].resources.limits.cpu", "status.conditions[*].type")
		}
		for _, path := range paths {
			assert.Positive(t, bytesOf(report, path), "%s: %s", name, path)
		}
	}
}

// Fails if memory has no path, or more than one.
func TestTheOwnBytesOfAllFieldsAreTheWhole(t *testing.T) {
	for name, decode := range decoders {
		store, _ := storeOf(t, 200, decode)
		for _, sample := range []int{20, footprint.Whole} {
			report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: sample})
			require.NoError(t, err)
			sum := int64(0)
			for _, field := range report.Fields {
				sum += field.OwnBytes
			}
			assert.InEpsilon(t, report.Bytes, sum, 0.02, name)
			for _, shares := range [][]footprint.Share{report.Namespaces, report.Types} {
				sum = 0
				objects := 0
				for _, share := range shares {
					sum += share.Bytes
					objects += share.Objects
				}
				assert.InEpsilon(t, report.Bytes, sum, 0.01, name)
				assert.InDelta(t, report.Objects, objects, 20, name)
			}
		}
	}
}

func TestTheEmptyBytesOfAFieldAreItsPlaceInAStruct(t *testing.T) {
	store, _ := storeOf(t, 100, decoders["typed"])
	report, err := footprint.Measure(t.Context(), store, footprint.Options{})
	require.NoError(t, err)
	for path, want := range map[string]int64{
		"spec":                               100 * int64(reflect.TypeFor[podSpec]().Size()),
		"spec.nodeName":                      100 * 16,
		"spec.containers":                    100 * 24,
		"spec.containers[*].env":             120 * 24,
		"spec.containers[*].env[*].name":     120 * 8 * 16,
		"spec.nodeSelector":                  100 * 8,
		"spec.terminationGracePeriodSeconds": 100 * 8,
		"metadata.labels.app":                0,
	} {
		field, found := report.Field(path)
		assert.True(t, found, path)
		assert.Equal(t, want, field.EmptyBytes, path)
	}
}

func TestAMapWithManyKeysIsOneFieldWithItsLargeKeys(t *testing.T) {
	many := map[string]any{"large": strings.Repeat("x", 100_000)}
	for i := range 500 {
		many[fmt.Sprint("key-", i)] = "a value of this key"
	}
	report := measureThings(t, many)
	assert.Len(t, report.Fields, 3, "value, value.large and key: %v", report.Fields)
	assert.Positive(t, bytesOf(report, "value.large"))
}

func TestValuesThatAreNestedTooDeeplyAreNotCounted(t *testing.T) {
	type element struct {
		Next *element
		Text string
	}
	var list *element
	for range 100_000 {
		list = &element{Next: list, Text: strings.Repeat("x", 16)}
	}
	report := measureThings(t, list)
	assert.InEpsilon(t, 10_000*(24+16), report.Bytes, 0.05)
	cycle := &element{}
	cycle.Next = cycle
	assert.Less(t, measureThings(t, cycle).Bytes, int64(500))
}

func TestAReaderThatCannotBeMeasuredIsAnError(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	filled, _ := storeOf(t, 3, decoders["typed"])
	empty := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	unsynced := newInformer(cachetest.NewTestSource(t, cachetest.Options{}))
	none := footprint.Options{}
	const noObjects = "there are no objects"
	tests := map[string]struct {
		ctx     context.Context
		reader  any
		options footprint.Options
		want    string
	}{
		"nil context":     {nil, filled, none, "the context is nil"},
		"nil":             {t.Context(), nil, none, "measure <nil>: the reader is nil"},
		"nil informer":    {t.Context(), (*cache.Informer[*pod])(nil), none, "the reader is nil"},
		"another type":    {t.Context(), 3, none, "measure int: it is no informer"},
		"empty":           {t.Context(), empty, none, noObjects},
		"zero reader":     {t.Context(), cache.Reader[*pod]{}, none, noObjects},
		"not synced":      {t.Context(), unsynced, none, noObjects + ": it has not synced"},
		"negative sample": {t.Context(), filled, footprint.Options{Sample: -1}, "Sample is -1"},
		"ended context":   {ended, filled, none, "context canceled"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report, err := footprint.Measure(test.ctx, test.reader, test.options)
			assert.Nil(t, report)
			assert.ErrorContains(t, err, test.want)
		})
	}
	_, err := footprint.Measure(t.Context(), empty, footprint.Options{})
	assert.ErrorIs(t, err, footprint.ErrNoObjects)
	_, err = footprint.Measure(ended, filled, footprint.Options{})
	assert.ErrorIs(t, err, context.Canceled)
}

func newInformer(source cache.Source) *cache.Informer[*pod] {
	return cache.NewTypedInformer(source, cache.InformerConfig[*pod]{Name: "pods"})
}

// Fails if a kind of reader is refused, or shows other objects.
func TestInformersSnapshotsReadersAndStoresHaveTheSameReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSourceOf[*pod](t)
		for i := range 50 {
			object, err := decoders["typed"](podJSON(i))
			require.NoError(t, err)
			source.MustApply(t, object.(*pod))
		}
		pods := newInformer(source)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = pods.Run(ctx) })
		defer running.Wait()
		defer cancel()
		require.NoError(t, pods.WaitSynced(ctx))

		whole, err := footprint.Measure(ctx, pods, footprint.Options{})
		require.NoError(t, err)
		assert.Equal(t, 50, whole.Objects)
		assert.True(t, whole.IsExact())
		assert.Equal(t, "pods", whole.Name)
		assert.Equal(t, pods.ResourceVersion(), whole.ResourceVersion)
		for _, reader := range []any{
			pods.Snapshot(),
			pods.Reader,
			pods.Shared(),
			pods.Shared().GetIndexer(),
			pods.Shared().GetStore(),
			pods.Shared().GetIndexer().(cache.Snapshotter).Snapshot(),
			cache.NewTypedSharedIndexInformer[*pod](pods.Shared()),
		} {
			report, err := footprint.Measure(ctx, reader, footprint.Options{})
			require.NoError(t, err, "%T", reader)
			assert.Equal(t, whole.Bytes, report.Bytes, "%T", reader)
			assert.Equal(t, whole.TableBytes, report.TableBytes, "%T", reader)
		}
		part, err := footprint.Measure(ctx, pods.ByNamespace("team-07"), footprint.Options{})
		require.NoError(t, err)
		assert.Equal(t, 2, part.Objects)
		assert.Equal(t, "team-07", part.Namespaces[0].Name)
		assert.Len(t, part.Namespaces, 1)
	})
}

func TestAnInformerThatHasNotSyncedIsSaidToBeIncomplete(t *testing.T) {
	pods := newInformer(cachetest.NewTestSourceOf[*pod](t))
	object, err := decoders["typed"](podJSON(1))
	require.NoError(t, err)
	require.NoError(t, pods.Shared().GetStore().Add(object))
	report, err := footprint.Measure(t.Context(), pods, footprint.Options{})
	require.NoError(t, err)
	assert.True(t, report.Incomplete)
	assert.Contains(t, report.String(), "NOT SYNCED")
}

// Fails if objects are walked through that are not in the sample: each has a namespace of its own.
func TestTheWorkOfAReportIsThatOfItsSample(t *testing.T) {
	store := cache.NewIndexer(thingKey, nil)
	for i := range 100_000 {
		require.NoError(t, store.Add(&thing{Key: fmt.Sprintf("namespace-%d/thing", i)}))
	}
	report, err := footprint.Measure(t.Context(), store, footprint.Options{})
	require.NoError(t, err)
	assert.Equal(t, 100_000, report.Objects)
	assert.Len(t, report.Namespaces, 1000)
}

// Fails if a report of many objects runs without a pause, for its search or for its measurements.
func TestAReportPausesAfterEachSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pauseTime = 50 * time.Microsecond
		store := cache.NewIndexer(thingKey, nil)
		for i := range 120_000 {
			require.NoError(t, store.Add(&thing{Key: fmt.Sprint("thing-number-", i)}))
		}
		begin := time.Now()
		_, err := footprint.Measure(t.Context(), store, footprint.Options{})
		require.NoError(t, err)
		const searched = 120_000 / 50_000
		const measured = 1000 / 200
		assert.Equal(t, (searched+measured)*pauseTime, time.Since(begin))

		ctx, cancel := context.WithTimeout(t.Context(), pauseTime+pauseTime/2)
		defer cancel()
		report, err := footprint.Measure(ctx, store, footprint.Options{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Nil(t, report, "it ended during the search")
	})
}

// Fails if two allocations that are close together are counted as one.
func TestTheSmallestAllocationsAreCountedEach(t *testing.T) {
	references := make([]*map[string]string, 10_000)
	for i := range references {
		references[i] = new(map[string]string)
	}
	const list = 10_000 * 8
	const values = 10_000 * 8
	assert.InEpsilon(t, list+values, measureThings(t, references).Bytes, 0.03)
}

func TestASampleIsAsLargeAsItIsAskedForAndSpreadOverTheStore(t *testing.T) {
	store, _ := storeOf(t, 2000, decoders["metadata"])
	report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: 100})
	require.NoError(t, err)
	assert.Equal(t, 100, report.Sampled)
	assert.Equal(t, 2000, report.Objects)
	assert.False(t, report.IsExact())
	assert.Positive(t, report.MarginBytes)
	again, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: 100})
	require.NoError(t, err)
	assert.Equal(t, report.Largest, again.Largest)
	exact, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: 2000})
	require.NoError(t, err)
	assert.InDelta(t, exact.Bytes, report.Bytes, float64(report.MarginBytes))
	assert.Zero(t, exact.MarginBytes)
}

func TestTheBacklogOfAHandlerIsBesideTheObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSourceOf[*pod](t)
		for i := range 500 {
			object, err := decoders["typed"](podJSON(i))
			require.NoError(t, err)
			source.MustApply(t, object.(*pod))
		}
		pods := newInformer(source)
		ctx, cancel := context.WithCancel(t.Context())
		hangs := cache.TypedResourceEventHandlerFuncs[*pod]{AddFunc: func(*pod) { <-ctx.Done() }}
		_, err := pods.AddHandler(hangs)
		require.NoError(t, err)
		var running sync.WaitGroup
		running.Go(func() { _ = pods.Run(ctx) })
		defer running.Wait()
		defer cancel()
		require.NoError(t, pods.WaitSynced(ctx))
		synctest.Wait() // the handler has taken its first change
		report, err := footprint.Measure(ctx, pods, footprint.Options{})
		require.NoError(t, err)
		assert.Equal(t, int64(80*499), report.BacklogBytes, "a change takes 80 bytes")
	})
}

func TestHintsNameTheLargestPartsThatCanBeDropped(t *testing.T) {
	store, _ := storeOf(t, 100, decoders["unstructured"])
	report, err := footprint.Measure(t.Context(), store, footprint.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, report.Hints)
	assert.Regexp(t, `^managedFields: \d+ %: kubeapi drops them unless`, report.Hints[0])
	large := measureThings(t, append(make([]any, 200), strings.Repeat("x", mebibyte))...)
	require.Len(t, large.Hints, 2)
	assert.Regexp(t, `^fields beside metadata: 100 %: the command fieldsused`, large.Hints[0])
	assert.Regexp(t, `^the object thing-number-200: \d+ %`, large.Hints[1])
}

// Controllers that cache only metadata ran out of memory by managed fields of 40 KiB each.
func TestManagedFieldsOfCachedMetadataAreTheFirstHint(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	names := strings.Repeat(`"f:status":{},`, 3000)
	for i := range 50 {
		raw := metav1.NewFieldsV1(fmt.Sprintf(`{%s"f:%d":{}}`, names, i))
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name:          fmt.Sprint("web-", i),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: raw}},
		}}
		require.NoError(t, store.Add(object))
	}
	report, err := footprint.Measure(t.Context(), store, footprint.Options{})
	require.NoError(t, err)
	require.Len(t, report.Hints, 1)
	assert.Regexp(t, `^managedFields: 9[89] %: kubeapi drops them unless`, report.Hints[0])
	managed, found := report.Field("metadata.managedFields")
	assert.True(t, found)
	assert.InEpsilon(t, 50*42_000, managed.Bytes, 0.2)
}

// Fails if a sample of one object claims to be exact.
func TestASampleOfOneObjectHasAMargin(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for i := range 10 {
		name := strings.Repeat("x", 10*i+1)
		require.NoError(t, store.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: 1})
	require.NoError(t, err)
	require.Equal(t, report.Bytes, report.MarginBytes)
}
