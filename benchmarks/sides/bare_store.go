package sides

import (
	"fmt"
	"slices"

	"github.com/watchmirror/cache/benchmarks/local"
)

// bareStore is a map, and for each index another one of slices: what has changed its value
// is moved, the others are found where they were. One goroutine may use it.
type bareStore struct {
	key     func(object *local.Small) string
	indexes []local.Index
	entries map[string]*bareEntry
	// objects are those of the entries, by their places.
	objects []any
	// values are the entries with a value, by index and value.
	values []map[string][]*bareEntry
}

// bareEntry has an object's place, its value in each index, and where that has the entry.
type bareEntry struct {
	place  int
	values []string
	places []int
}

func newBareStore(keys Keys, indexes []local.Index) *bareStore {
	s := &bareStore{indexes: indexes, key: func(object *local.Small) string { return object.Namespace + "/" + object.Name }}
	if keys == KeptKeys {
		s.key = func(object *local.Small) string { return keptKey(object.Namespace + "/" + object.Name) }
	}
	s.clear(0)
	return s
}

func (s *bareStore) clear(objects int) {
	s.entries = make(map[string]*bareEntry, objects)
	s.objects = make([]any, 0, objects)
	s.values = make([]map[string][]*bareEntry, len(s.indexes))
	for n := range s.values {
		s.values[n] = map[string][]*bareEntry{}
	}
}

func (s *bareStore) Update(object *local.Small) error {
	key := s.key(object)
	entry, known := s.entries[key]
	if !known {
		s.objects = append(s.objects, nil)
		entry = &bareEntry{place: len(s.objects) - 1, values: make([]string, len(s.indexes)), places: make([]int, len(s.indexes))}
		s.entries[key] = entry
	}
	s.objects[entry.place] = object
	for n, index := range s.indexes {
		values, err := index.Of(object)
		if err != nil {
			return err
		}
		if known && values[0] == entry.values[n] {
			continue
		}
		if known {
			s.remove(n, entry)
		}
		same := s.values[n][values[0]]
		entry.values[n], entry.places[n] = values[0], len(same)
		s.values[n][values[0]] = append(same, entry)
	}
	return nil
}

// remove takes an entry out of an index; the last of the same value takes its place.
func (s *bareStore) remove(n int, entry *bareEntry) {
	same := s.values[n][entry.values[n]]
	last := same[len(same)-1]
	same[entry.places[n]], last.places[n] = last, entry.places[n]
	s.values[n][entry.values[n]] = same[:len(same)-1]
}

func (s *bareStore) Get(key string) bool { return s.entries[key] != nil }

func (s *bareStore) ByIndex(index, value string) (int, error) {
	n := slices.IndexFunc(s.indexes, func(i local.Index) bool { return i.Name == index })
	if n < 0 {
		return 0, fmt.Errorf("no index %q", index)
	}
	same := s.values[n][value]
	found := make([]any, len(same))
	for i, entry := range same {
		found[i] = s.objects[entry.place]
	}
	return len(found), nil
}

func (s *bareStore) List() int { return len(slices.Clone(s.objects)) }

func (s *bareStore) Iterate() int { return walk(s.objects) }

func (s *bareStore) ListKeys() int {
	keys := make([]string, 0, len(s.entries))
	for key := range s.entries {
		keys = append(keys, key)
	}
	return len(keys)
}

func (s *bareStore) Replace(list []any) error {
	s.clear(len(list))
	for _, item := range list {
		object, ok := item.(*local.Small)
		if !ok {
			return fmt.Errorf("%T is not stored", item)
		}
		if err := s.Update(object); err != nil {
			return err
		}
	}
	return nil
}

func (*bareStore) Close() {}
