package main

import (
	"bytes"
	"testing"
	"time"

	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

func versioned(name, version, phase string) *unstructured.Unstructured {
	pod := simplePod("a", name, phase)
	pod.SetResourceVersion(version)
	return pod
}

// holding is a mirror that does not run, with a content of the test's choice.
func holding(t *testing.T, objects ...*unstructured.Unstructured) *mirror {
	t.Helper()
	m, err := newMirror(cachetest.NewSource(cachetest.Options{}), "pods", 1, &narrator{})
	require.NoError(t, err)
	for _, object := range objects {
		require.NoError(t, m.informer.Shared().GetStore().Add(object))
	}
	return m
}

func notDeleted(string, string) bool { return false }

func TestComparingFindsEachKindOfDifference(t *testing.T) {
	for name, test := range map[string]struct {
		mirrored []*unstructured.Unstructured
		differs  string
	}{
		"missing": {nil, "a/one: not in the mirror, source has version 5"},
		"old":     {[]*unstructured.Unstructured{versioned("one", "4", "Running")}, "a/one: version 4 in the mirror, 5 in the source"},
		"content": {[]*unstructured.Unstructured{versioned("one", "5", "Failed")},
			"a/one: other content at the same version 5: phase Running → Failed"},
		"left over": {[]*unstructured.Unstructured{versioned("one", "5", "Running"), versioned("two", "3", "Running")},
			"a/two: version 3 is in the mirror, not in the source"},
	} {
		t.Run(name, func(t *testing.T) {
			list := []*unstructured.Unstructured{versioned("one", "5", "Running")}
			c := compare(list, "9", holding(t, test.mirrored...), notDeleted)
			require.Equal(t, []string{test.differs}, c.differ)
			require.Empty(t, c.moved)
			require.ErrorContains(t, errorOf(c.differ), test.differs)
		})
	}
}

func TestComparingDistinguishesDifferentFromNewer(t *testing.T) {
	list := []*unstructured.Unstructured{versioned("one", "5", "Running"), versioned("two", "6", "Running"), versioned("three", "7", "Running")}
	m := holding(t, versioned("one", "5", "Running"), versioned("two", "10", "Running"), versioned("four", "11", "Running"))
	c := compare(list, "9", m, func(version, key string) bool { return version == "9" && key == "a/three" })
	require.Empty(t, c.differ)
	require.Equal(t, 1, c.equal)
	require.Equal(t, []string{"a/four: created since", "a/three: deleted since", "a/two: changed since"}, c.moved)
}

func TestADifferenceOfAnIndexIsFoundByValue(t *testing.T) {
	m := holding(t, versioned("one", "1", "Running"), versioned("two", "2", "Pending"))
	values, differ := indexDifferences(m.objects(), m, phaseIndex)
	require.Equal(t, 2, values)
	require.Empty(t, differ)

	others := []*unstructured.Unstructured{versioned("one", "1", "Running"), versioned("two", "2", "Failed")}
	_, differ = indexDifferences(others, m, phaseIndex)
	require.Equal(t, []string{
		`index phase: no object has the value "Pending"`,
		`index phase: value "Failed" has keys [], want ["a/two"]`,
	}, differ)
}

// The demonstration's own check, made to fail: what it ends with is not a fixed
// text.
func TestTheDemonstrationFailsIfTheMirrorDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		network := cachetest.NewListener()
		server, _, err := startDemoServer(network)
		require.NoError(t, err)
		defer func() { require.NoError(t, server.close()) }()
		objects := server.objects()
		m := holding(t, objects[1:]...)
		d := &demo{show: newDisplay(&out), server: server, mirror: m, narrator: newNarrator(nil, "pods", nil)}
		err = d.check(server.source.ResourceVersion())
		require.ErrorContains(t, err, keyOf(objects[0])+": not in the mirror")
		require.ErrorContains(t, err, "index namespace: ")
		require.NotContains(t, out.String(), "mirror equals")
	})
}

func TestOnlyTenDifferencesAreNamed(t *testing.T) {
	require.NoError(t, errorOf(nil))
	err := errorOf(make([]string, 12))
	require.ErrorContains(t, err, "and 2 more")
}

func TestWaitingForTheMirrorEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := holding(t)
		started := time.Now()
		ctx, cancel := contextFor(t, 5*time.Second)
		defer cancel()
		require.False(t, m.waitUntil(ctx, func() bool { return false }))
		require.Equal(t, 5*time.Second, time.Since(started))
		require.True(t, m.waitUntil(ctx, func() bool { return true }))
	})
}

func TestATombstoneIsDeliveredAsADeletion(t *testing.T) {
	var out bytes.Buffer
	n := newNarrator(newDisplay(&out), "pods", nil)
	n.rememberDeletions()
	last := versioned("one", "5", "Running")
	n.OnDelete(cache.DeletedObject[*unstructured.Unstructured]{
		OptionalObj:       last,
		FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "a/one", Obj: last},
	})
	require.Contains(t, out.String(), "gone, seen by a list")
	require.True(t, n.deletedAfter("4", "a/one"))
	require.False(t, n.deletedAfter("5", "a/one"))
	require.False(t, n.deletedAfter("4", "a/two"))
}
