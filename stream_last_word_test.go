package cache

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/watch"
)

// G6: in a streaming list an object may be sent in a state of which no key can be made,
// and again, later, in one that can be taken, or as deleted: then it is not held back,
// though both reach the store in one part. Fails if what a part has of an object after its
// rejection is not looked at, or more is taken for its last word than is.
func TestG6InAStreamALaterStateReleasesOneWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyless := func(obj any) (string, error) {
			if o, ok := obj.(*object); ok && o.Labels["v"] == "keyless" {
				return "", errBoom
			}
			return MetaNamespaceKeyFunc(obj)
		}
		events := []watch.Event{
			{Type: watch.Added, Object: labelled(podAt("a", "healed", "1"), "keyless")},
			{Type: watch.Modified, Object: podAt("a", "healed", "2")},
			{Type: watch.Added, Object: podAt("a", "spoilt", "3")},
			{Type: watch.Modified, Object: labelled(podAt("a", "spoilt", "4"), "keyless")},
			{Type: watch.Added, Object: labelled(podAt("a", "broken", "5"), "keyless")},
			{Type: watch.Modified, Object: podAt("a", "broken", "6")},
			{Type: watch.Modified, Object: undecoded(podAt("a", "broken", "7"))},
			{Type: watch.Added, Object: labelled(podAt("a", "gone", "8"), "keyless")},
			{Type: watch.Deleted, Object: podAt("a", "gone", "9")},
			{Type: watch.Added, Object: labelled(podAt("a", "perhaps gone", "10"), "keyless")},
			{Type: watch.Deleted, Object: labelled(podAt("a", "perhaps gone", "11"), "keyless")},
			{Type: watch.Bookmark, Object: initialEventsEnd("12")},
		}
		indexer, h := NewIndexer(keyless, nil), &heard{}
		source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return newProbe(events...), nil }}
		r := NewReflectorWithOptions(source, &object{}, indexer, ReflectorOptions{Strategy: ListStreaming, ErrorHandler: h.handle})
		stop := runReflector(t, r)
		assert.ElementsMatch(t, []string{"a/healed", "a/spoilt", "a/broken"}, indexer.ListKeys())
		var held []string
		for _, q := range r.Status().Quarantined {
			held = append(held, q.Key)
		}
		assert.Equal(t, []string{"a/broken", "a/perhaps gone", "a/spoilt"}, held)
		assert.Equal(t, 7, h.count(CauseObject), "each is reported")
		stop()
	})
}
