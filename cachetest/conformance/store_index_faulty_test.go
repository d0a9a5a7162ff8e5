package conformance

import (
	goruntime "runtime"
	"slices"
	"time"

	"github.com/watchmirror/cache"
)

// Stores with one fault in their indexes each.

type indexesNil struct{ goodStore }

func (s indexesNil) ByIndex(name, value string) ([]any, error) {
	objects, err := s.goodStore.ByIndex(name, value)
	return append(objects, nil), err
}

// remembersIndexes returns its first results again.
type remembersIndexes struct {
	goodStore
	keys map[string][]string
}

func (s *remembersIndexes) IndexKeys(name, value string) ([]string, error) {
	if keys, known := s.keys[name+value]; known {
		return keys, nil
	}
	keys, err := s.goodStore.IndexKeys(name, value)
	if s.keys == nil {
		s.keys = map[string][]string{}
	}
	s.keys[name+value] = keys
	return keys, err
}

type keepsValues struct {
	goodStore
	values []string
}

func (s *keepsValues) ListIndexFuncValues(name string) []string {
	for _, value := range s.goodStore.ListIndexFuncValues(name) {
		if name == "by mark" && !slices.Contains(s.values, value) {
			s.values = append(s.values, value)
		}
	}
	if name == "by mark" {
		return slices.Clone(s.values)
	}
	return s.goodStore.ListIndexFuncValues(name)
}

type findsNothing struct{ goodStore }

func (findsNothing) Index(string, any) ([]any, error) { return nil, nil }

type addsNoIndexLater struct{ goodStore }

func (s addsNoIndexLater) AddIndexers(more cache.Indexers) error {
	if len(s.List()) > 0 {
		return nil
	}
	return s.goodStore.AddIndexers(more)
}

// indexesWhatWasThere omits writes made while indexes are added.
type indexesWhatWasThere struct{ goodStore }

func (s indexesWhatWasThere) AddIndexers(more cache.Indexers) error {
	then := s.List()
	isNew := func(obj any) bool { return !slices.Contains(then, obj) }
	// Without a write between the two, nothing would be omitted.
	for begun := time.Now(); !slices.ContainsFunc(s.List(), isNew) && time.Since(begun) < time.Minute; {
		goruntime.Gosched()
	}
	of := cache.Indexers{}
	for name, function := range more {
		of[name] = func(obj any) ([]string, error) {
			if isNew(obj) {
				return nil, nil
			}
			return function(obj)
		}
	}
	return s.goodStore.AddIndexers(of)
}

type findsNothingUnderAnyName struct{ goodStore }

func (s findsNothingUnderAnyName) ByIndex(name, value string) ([]any, error) {
	objects, _ := s.goodStore.ByIndex(name, value)
	return objects, nil
}

type addsWhatItCan struct{ goodStore }

func (s addsWhatItCan) AddIndexers(more cache.Indexers) error {
	var failed error
	for name, function := range more {
		if err := s.goodStore.AddIndexers(cache.Indexers{name: function}); err != nil {
			failed = err
		}
	}
	return failed
}

type sharesIndexers struct {
	goodStore
	indexers cache.Indexers
}

func (s *sharesIndexers) GetIndexers() cache.Indexers {
	if s.indexers == nil {
		s.indexers = s.goodStore.GetIndexers()
	}
	return s.indexers
}

// repeatsObjects returns an object once for each of its values.
type repeatsObjects struct{ goodStore }

func (s repeatsObjects) Index(name string, obj any) ([]any, error) {
	values, err := s.GetIndexers()[name](obj)
	all := []any{}
	for _, value := range values {
		objects, _ := s.ByIndex(name, value)
		all = append(all, objects...)
	}
	return all, err
}
