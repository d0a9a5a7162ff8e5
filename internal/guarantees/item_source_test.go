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

// itemSource returns the lists of another source item by item.
type itemSource struct {
	*cachetest.Source
	// lists returns the lists; nil is Source.
	lists cache.ListerWithContext
	// metadataLate is true if the list's metadata is only returned at its end.
	metadataLate bool
	// each, if set, is called before each item; pages and items are counted from 0. An
	// error ends the page.
	each func(ctx context.Context, page, item int) error

	mu sync.Mutex
	// accepted are the numbers of accepted items, by page.
	accepted []int
}

// listByItem makes the source of a Config list item by item.
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
	if s.metadataLate {
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

// onEach sets each for later pages.
func (s *itemSource) onEach(each func(ctx context.Context, page, item int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each = each
}

// pages returns the number of requested pages.
func (s *itemSource) pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted)
}

// acceptedOf returns the number of accepted items of a page.
func (s *itemSource) acceptedOf(page int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted[page]
}

// itemFuncSource is a source made of functions that lists item by item; list receives the
// number of the call, from 1.
type itemFuncSource struct {
	funcSource
	list func(ctx context.Context, n int, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error)

	mu       sync.Mutex
	requests []metav1.ListOptions
}

func (s *itemFuncSource) ListItems(ctx context.Context, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
	s.mu.Lock()
	s.requests = append(s.requests, o)
	n := len(s.requests)
	s.mu.Unlock()
	return s.list(ctx, n, o, take)
}

// listCalls returns the number of requested lists.
func (s *itemFuncSource) listCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// silentWatch returns a watch that sends nothing.
func silentWatch(context.Context, int) (watch.Interface, error) { return newRecordedWatch(), nil }

// takeAll calls take for items whose names and versions are first to last.
func takeAll(take takeFunc, said metav1.ListMeta, first, last int) error {
	for i := first; i <= last; i++ {
		if err := take(said, podAt("a", itoa(i), itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// partStore calls a function before each part of a list, which may refuse the part.
type partStore struct {
	cache.Store
	// onPart is called before each part.
	onPart func(ctx context.Context, part cache.ReplacementPart) error
}

func (s *partStore) BeginReplace(o cache.ReplaceOptions) cache.Replacement {
	return &partReplacement{s.Store.(cache.Replacer).BeginReplace(o), s}
}

type partReplacement struct {
	cache.Replacement
	store *partStore
}

func (w *partReplacement) Add(ctx context.Context, part cache.ReplacementPart) ([]*cache.ObjectError, error) {
	if err := w.store.onPart(ctx, part); err != nil {
		return nil, err
	}
	return w.Replacement.Add(ctx, part)
}
