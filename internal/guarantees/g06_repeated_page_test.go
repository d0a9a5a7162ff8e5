package guarantees

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

// replacedStore is a foreign store that records the arguments of Replace.
type replacedStore struct {
	cache.ReflectorStore
	lists [][]string
}

func (s *replacedStore) Replace(list []any, version string) error {
	var names []string
	for _, obj := range list {
		object, ok := obj.(metav1.Object)
		if !ok {
			return fmt.Errorf("unexpected object %T", obj)
		}
		names = append(names, object.GetName()+"@"+object.GetResourceVersion())
	}
	s.lists = append(s.lists, names)
	return nil
}

// If a list has an object twice, for example because a page was repeated, a foreign store's Replace
// has it once, in the newest state. Fails if Replace has both states, or the last one although it
// is older.
func TestAForeignStoreGetsTheNewestStateOfAnObjectThatIsListedTwice(t *testing.T) {
	objects := slices.Concat(validPods(10), validPods(10), []apiruntime.Object{validPod("3", "50"), validPod("4", "51"), validPod("3", "4")})
	for _, way := range []string{wholeList, pagedList, itemByItem} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, reported := newStateSource(objects), &errorRecorder{}
				store := &replacedStore{}
				r := cache.NewReflectorWithOptions(source.asListerWatcher(way), &metav1.PartialObjectMetadata{}, store,
					cache.ReflectorOptions{Strategy: strategyFor(way), ErrorHandler: reported.handle})
				m := mirrorUnderTest{run: r.RunWithContext}
				end := m.begin(t)
				assert.Equal(t, [][]string{{"0@1", "1@2", "2@3", "3@50", "4@51", "5@6", "6@7", "7@8", "8@9", "9@10"}}, store.lists)
				assert.Len(t, reported.all(), 2, "the older states of 3 and 4")
				end()
			})
		})
	}
}

// breakingPage lists item by item in two pages, ten items and the rest. The second page breaks
// once, after some items.
type breakingPage struct {
	stateItemSource
	items  []apiruntime.Object
	after  int
	broken bool
}

func (b *breakingPage) ListItems(_ context.Context, options metav1.ListOptions,
	take func(metav1.ListMeta, apiruntime.Object) error,
) (metav1.ListMeta, error) {
	about, items := metav1.ListMeta{ResourceVersion: "100", Continue: "rest"}, b.items[:10]
	if options.Continue != "" {
		about.Continue, items = "", b.items[10:]
	}
	for i, item := range items {
		if options.Continue != "" && i == b.after && !b.broken {
			b.broken = true
			return metav1.ListMeta{}, io.ErrUnexpectedEOF
		}
		if err := take(about, item); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return about, nil
}

// reportedOf returns the keys reported for a list whose second page breaks once, after some
// items.
func reportedOf(t *testing.T, items []apiruntime.Object, after int) (keys []string) {
	reported := &errorRecorder{}
	source := &breakingPage{stateItemSource: stateItemSource{newStateSource(nil)}, items: items, after: after}
	r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, cache.NewStore(cache.MetaNamespaceKeyFunc),
		cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: reported.handle})
	m := mirrorUnderTest{run: r.RunWithContext}
	end := m.begin(t)
	sleep(10 * time.Second)
	assert.True(t, source.broken)
	assert.Equal(t, "100", r.LastSyncResourceVersion())
	end()
	for _, err := range reported.all() {
		var object *cache.ObjectError
		if errors.As(err, &object) {
			keys = append(keys, object.Key)
		}
	}
	return keys
}

// An object of another type that is listed twice, because its page is repeated, is reported once, even
// without a version. Fails if a list counts each item of another type.
func TestAnObjectOfAnotherTypeIsReportedOnceForAPageThatComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var items []apiruntime.Object
		var want []string
		for i := range 250 {
			name := fmt.Sprintf("other %03d", i)
			items, want = append(items, wrongTypePod(name, "")), append(want, "a/"+name)
		}
		assert.Equal(t, want, reportedOf(t, append(items, validPod("good", "1")), 205))
	})
}

// The position that identifies an object without a name counts each item once, also of a repeated page.
// Fails if items before the page broke are counted twice.
func TestThePlaceOfANamelessItemIsRightAfterAPageThatComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := validPods(250)
		nameless := validPod("", "13")
		nameless.Namespace = ""
		items[12] = nameless
		const place = "one of items 11 to 110 of the list (1)"
		assert.Equal(t, []string{place}, reportedOf(t, items, 205))
	})
}
