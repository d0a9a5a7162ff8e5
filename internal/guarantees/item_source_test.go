package guarantees

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

type takeFunc = func(metav1.ListMeta, apiruntime.Object) error

// itemSource is a source that lists item by item what another lists.
type itemSource struct {
	*cachetest.Source
	// lists is asked for the lists, if it is not Source.
	lists cache.ListerWithContext
	// late is true if it says nothing of a list before its end.
	late bool
	// each, if set, is called before each item of a page, from 0 on; an error of it
	// ends the page.
	each func(ctx context.Context, page, item int) error

	mu sync.Mutex
	// accepted are how many items of each page take has accepted.
	accepted []int
}

// listByItem makes the source of a rig list item by item.
func listByItem(c *cache.Config) {
	switch source := c.ListerWatcher.(type) {
	case *cachetest.Source:
		c.ListerWatcher = &itemSource{Source: source}
	case *badDecoder:
		c.ListerWatcher = struct {
			*badDecoder
			cache.ItemLister
		}{source, &itemSource{lists: source}}
	}
}

// ListWithContext must not be called.
func (s *itemSource) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	panic("a source that can list item by item is asked for a whole list")
}

func (s *itemSource) ListItems(ctx context.Context, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
	s.mu.Lock()
	page, each := len(s.accepted), s.each
	s.accepted = append(s.accepted, 0)
	s.mu.Unlock()
	lists := s.lists
	if lists == nil {
		lists = s.Source
	}
	list, err := lists.ListWithContext(ctx, o)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	about := metav1.ListMeta{ResourceVersion: accessor.GetResourceVersion(), Continue: accessor.GetContinue()}
	said := about
	if s.late {
		said = metav1.ListMeta{}
	}
	n := 0
	return about, eachItem(list, func(item apiruntime.Object) error {
		if each != nil {
			if err := each(ctx, page, n); err != nil {
				return err
			}
		}
		n++
		if err := take(said, item); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.accepted[page]++
		return nil
	})
}

// onEach sets each for the pages to come.
func (s *itemSource) onEach(each func(ctx context.Context, page, item int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each = each
}

// pages is how many have been asked for.
func (s *itemSource) pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted)
}

// acceptedOf is how many items of a page have been accepted.
func (s *itemSource) acceptedOf(page int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted[page]
}

// itemScript is a source made of functions, that lists item by item; list gets the
// number of the call, from 1 on.
type itemScript struct {
	scripted
	list func(ctx context.Context, n int, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error)

	mu    sync.Mutex
	asked []metav1.ListOptions
}

func (s *itemScript) ListItems(ctx context.Context, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
	s.mu.Lock()
	s.asked = append(s.asked, o)
	n := len(s.asked)
	s.mu.Unlock()
	return s.list(ctx, n, o, take)
}

// lists is how many lists were asked for.
func (s *itemScript) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// silentWatch is the watch of a script that is about lists.
func silentWatch(context.Context, int) (watch.Interface, error) { return newProbe(), nil }

// takeAll gives take items with the versions and names from first to last.
func takeAll(take takeFunc, said metav1.ListMeta, first, last int) error {
	for i := first; i <= last; i++ {
		if err := take(said, podAt("a", itoa(i), itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// partStore is a store with parts that can be watched, and fail.
type partStore struct {
	cache.Store
	// onPart is called before each part.
	onPart func(ctx context.Context, part cache.ReplacementPart) error
}

func (s *partStore) BeginReplace(o cache.ReplaceOptions) cache.Replacement {
	return &partWatch{s.Store.(cache.Replacer).BeginReplace(o), s}
}

type partWatch struct {
	cache.Replacement
	store *partStore
}

func (w *partWatch) Add(ctx context.Context, part cache.ReplacementPart) ([]*cache.ObjectError, error) {
	if err := w.store.onPart(ctx, part); err != nil {
		return nil, err
	}
	return w.Replacement.Add(ctx, part)
}
