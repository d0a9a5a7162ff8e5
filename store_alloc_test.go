package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a controller does all day makes no garbage: the collector's work is what a cache costs
// most. Fails if a key or an index value is made where the object's own strings would do, or
// if a closure of an iterator escapes.
func TestReadingAndUpdatingAllocateNothing(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector allocates, and has pools forget what they hold")
	}
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	informer := NewInformerFor[*object](&ListWatch{}, InformerConfig[*object]{})
	for i := range 1000 {
		require.NoError(t, s.Add(podAt("a", itoa(i), "1")))
		require.NoError(t, informer.Shared().GetIndexer().Add(podAt("a", itoa(i), "1")))
	}
	newer, seen := podAt("a", "5", "7"), 0
	for name, act := range map[string]func(){
		"Update":   func() { _ = s.Update(newer) },
		"Get":      func() { _, _, _ = s.Get(newer) },
		"GetByKey": func() { _, _, _ = s.GetByKey("a/5") },
		"absent":   func() { _, _, _ = s.GetByKey("a/none") },
		"Lookup":   func() { informer.Lookup("a/5") },
		"Len":      func() { seen += informer.Len() },
		"Objects": func() {
			snapshot, _ := SnapshotOf(s)
			for range snapshot.Objects() {
				seen++
			}
		},
		"Values": func() {
			for range informer.Values() {
				seen++
			}
		},
	} {
		act() // snapshots are shared as long as nothing is written, and the first is made
		most := 0.0
		if name == "Update" {
			most = 3 // the values of an index: the function's, and two slices of the store
		}
		assert.LessOrEqual(t, testing.AllocsPerRun(100, act), most, name)
	}
	assert.Positive(t, seen)
}
