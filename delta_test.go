package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/internal/table"
)

func TestDeltasKnowTheirOldestAndTheirNewest(t *testing.T) {
	assert.Nil(t, Deltas(nil).Oldest())
	assert.Nil(t, Deltas{}.Newest())
	d := Deltas{{Added, 1}, {Updated, 2}, {Deleted, 3}}
	assert.Equal(t, &Delta{Added, 1}, d.Oldest())
	assert.Equal(t, &Delta{Deleted, 3}, d.Newest())
	assert.Same(t, &d[2], d.Newest(), "the one in the slice")
}

func TestTwoDeletionsBecomeTheOneThatSaysMore(t *testing.T) {
	seen := queued{Delta: Delta{Deleted, podAt("a", "1", "2")}, key: table.KeyOf("a/1")}
	noticed := queued{Delta: Delta{Deleted, DeletedFinalStateUnknown{Key: "a/1"}}, key: table.KeyOf("a/1")}
	noticedAgain := queued{Delta: Delta{Deleted, DeletedFinalStateUnknown{Key: "a/1", Obj: 1}}, key: table.KeyOf("a/1")}
	added := queued{Delta: Delta{Added, podAt("a", "1", "1")}, key: table.KeyOf("a/1")}
	for name, tc := range map[string]struct {
		earlier, later, want queued
		ok                   bool
	}{
		"the final state is known already":    {seen, noticed, seen, true},
		"the final state comes later":         {noticed, seen, seen, true},
		"two final states, the first one":     {seen, queued{Delta: Delta{Deleted, 2}}, seen, true},
		"two tombstones, the second one":      {noticed, noticedAgain, noticedAgain, true},
		"a deletion after something else":     {added, seen, queued{}, false},
		"something else after a deletion":     {seen, added, queued{}, false},
		"two changes that are not a deletion": {added, added, queued{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			merged, ok := mergeDeletion(tc.earlier, tc.later)
			assert.Equal(t, tc.want, merged)
			assert.Equal(t, tc.ok, ok)
		})
	}
}
