package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// S1.
func TestNamesAndDescriptionsHaveDefaults(t *testing.T) {
	store := NewStore(MetaNamespaceKeyFunc)
	example := &unstructured.Unstructured{}
	example.SetAPIVersion("apps/v1")
	example.SetKind("Deployment")
	for want, expected := range map[string]any{
		"<unspecified>":              nil,
		"*v1.PartialObjectMetadata":  &object{},
		"apps/v1, Kind=Deployment":   example,
		"*unstructured.Unstructured": &unstructured.Unstructured{},
	} {
		assert.Equal(t, want, NewReflector(&ListWatch{}, expected, store, 0).TypeDescription())
	}
	assert.Equal(t, "mine", NewNamedReflector("mine", &ListWatch{}, nil, store, 0).Name())
	assert.Regexp(
		t, `^testing/testing\.go:\d+(#\d+)?$`, NewReflector(&ListWatch{}, nil, store, 0).Name(),
		"the first caller outside this package")
	named := NewReflectorWithOptions(
		&ListWatch{}, nil, store, ReflectorOptions{TypeDescription: "things"})
	assert.Equal(t, "things", named.TypeDescription())
}

// The JSON form of a status is stable: monitoring reads it. Fails if a field is renamed, or an
// error prints as {}.
func TestAStatusHasAStableJSONFormAndPrintsInOneLine(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status := Status{
		Name: "pods", TypeDescription: "*v1.Pod", Phase: PhaseWatching, PhaseSince: at,
		AppliedVersion: "12", ReceivedVersion: "13", Synced: true, ConsecutiveFailures: 2,
		LastFailure: &Failure{Cause: CauseExpired, Err: errBoom, Time: at},
		Failures:    map[Cause]int64{CauseExpired: 2, CauseOther: 1},
		Objects:     3, Checksum: 1<<63 + 1,
		Quarantined: []Quarantined{
			{Key: "a/1", ResourceVersion: "9", Stage: stageKey, Err: errBoom},
		},
		Handlers: []HandlerStatus{
			{
				Name:            "h",
				Backlog:         3,
				OldestAge:       1500 * time.Millisecond,
				Delivered:       7,
				Panics:          1,
				NotifiedVersion: "11",
			},
			{Name: "i"},
		},
	}
	status.Namespaces = []Status{{Namespace: "a", Phase: PhaseForbidden, PhaseSince: at}}
	got, err := json.MarshalIndent(status, "", "\t")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/status.json")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got)+"\n")
	const line = `pods (*v1.Pod): retrying since 2026-01-02T03:04:05Z, version "12", received "13", failures in a row: 2, ` +
		`quarantined: 1, handlers behind: 1 of 2, last failure: expired at 2026-01-02T03:04:05Z: boom`
	assert.Equal(t, line, fmt.Sprintf("%v", status))
	current := Status{
		Namespace:       "a",
		Name:            "pods/a",
		TypeDescription: "*v1.Pod",
		Phase:           PhaseListing,
		PhaseSince:      at,
		Handlers:        status.Handlers[1:],
	}
	assert.Equal(
		t, `namespace "a", pods/a (*v1.Pod): listing since 2026-01-02T03:04:05Z, not synced`,
		fmt.Sprint(current))
	healthy := Status{
		Name: "pods", TypeDescription: "*v1.Pod", Phase: PhaseWatching, PhaseSince: at,
		Synced: true,
		Time:   at.Add(90 * time.Second), LastCurrent: at.Add(88 * time.Second), hasStore: true,
	}
	assert.Equal(
		t, `pods (*v1.Pod): watching since 2026-01-02T03:04:05Z, 0 objects, stale for at most 2s`,
		fmt.Sprint(healthy))
	assert.Equal(
		t, "handler h (ordered): 3 behind, the oldest for 1.5s, 7 delivered, 1 panicked",
		fmt.Sprint(status.Handlers[0]))
	assert.Equal(
		t, `object "a/1" at version 9, key failed: boom`, fmt.Sprint(status.Quarantined[0]))
}

func TestTheActivityIsThePhaseInWordsForPeople(t *testing.T) {
	words := map[Phase][2]string{ // without and with failures in a row
		PhaseIdle:      {"not started", "not started"},
		PhaseListing:   {"listing", "retrying"},
		PhaseStreaming: {"streaming", "retrying"},
		PhaseWatching:  {"watching", "retrying"},
		PhasePaused:    {"waiting", "retrying"},
		PhaseNotFound:  {"not found", "not found"},
		PhaseForbidden: {"forbidden", "forbidden"},
		PhaseStopped:   {"stopped", "stopped"},
	}
	assert.Len(t, words, len(byUrgency))
	for phase, want := range words {
		assert.Equal(t, want[0], Status{Phase: phase}.Activity())
		assert.Equal(t, want[1], Status{Phase: phase, ConsecutiveFailures: 1}.Activity())
	}
}

func TestAKeyQuarantinedTwiceIsListedOnceWithItsNewestVersion(t *testing.T) {
	held := func(key, version string) Quarantined {
		return Quarantined{Key: key, ResourceVersion: version}
	}
	assert.Equal(t, []Quarantined{held("a", "10"), held("b", "1"), held("c", "")}, mergeQuarantined(
		[]Quarantined{held("a", "9"), held("c", ""), held("a", "10"), held("b", "1")}))
}

// What a reflector remembers from one state to the next, each with the test that
// would notice if it forgot.

// Sources with defects of every kind get a clear error, and the reflector continues.
func TestBadAnswersOfASourceAreClearErrors(t *testing.T) {
	lists := map[string]struct {
		answer apiruntime.Object
		want   error
	}{
		"nil":         {nil, errNilList},
		"nil pointer": {(*metav1.PartialObjectMetadataList)(nil), errNilList},
		"table":       {&metav1.Table{}, nil},
		"decoded table": {
			&unstructured.UnstructuredList{
				Object: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "Table"},
			},
			errTable,
		},
		"not a list at all": {pod("a", "1"), nil},
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
						return list.answer, nil
					},
					WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						return nil, nil
					},
				}
				indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
				require.NoError(t, indexer.Add(pod("kept", "1")))
				err := NewReflectorWithOptions(
					source,
					nil,
					indexer,
					ReflectorOptions{
						Name:            "n",
						TypeDescription: "pods",
						ErrorHandler:    func(context.Context, *Reflector, error) {},
					},
				).
					ListAndWatchWithContext(
						t.Context())
				require.Error(t, err)
				assert.Contains(t, err.Error(), "pods")
				if list.want != nil {
					assert.ErrorIs(t, err, list.want)
				}
				assert.Len(t, indexer.ListKeys(), 1, "nothing that was stored is lost")
			})
		})
	}
	t.Run("no watch and no error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &ListWatch{ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
				return &metav1.PartialObjectMetadataList{}, nil
			}, WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return nil, nil }}
			err := NewReflector(
				source, nil, NewIndexer(MetaNamespaceKeyFunc, nil), 0).ListAndWatchWithContext(
				t.Context())
			assert.ErrorIs(t, err, errNilWatch)
		})
	})
	t.Run("no functions", func(t *testing.T) {
		_, err := (&ListWatch{}).List(metav1.ListOptions{})
		assert.ErrorIs(t, err, errNoListFunc)
		_, err = (&ListWatch{}).Watch(metav1.ListOptions{})
		assert.ErrorIs(t, err, errNoWatchFunc)
	})
}

type marked bool

func (m marked) IsWatchListSemanticsUnSupported() bool { return bool(m) }

// A ListWatch is streamed only if it says of its client that it can; what that
// says is found through the wrapper, as is DisableChunking.
func TestOnlyAMarkedSourceIsStreamed(t *testing.T) {
	store := NewStore(MetaNamespaceKeyFunc)
	lw := &ListWatch{DisableChunking: true}
	for _, row := range []struct {
		source ListerWatcher
		stream bool
	}{
		{lw, false},
		{ToListWatcherWithWatchListSemantics(lw, nil), true},
		{ToListWatcherWithWatchListSemantics(lw, marked(false)), true},
		{ToListWatcherWithWatchListSemantics(lw, marked(true)), false},
	} {
		r := NewReflector(row.source, nil, store, 0)
		assert.Equal(t, row.stream, r.streams)
		assert.True(t, r.wholeLists)
	}
}
