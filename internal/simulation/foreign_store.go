package simulation

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// foreignStore is a store with only the five methods that a reflector needs. It refuses everything
// while the script says so.
type foreignStore struct {
	world *world.World

	mu      sync.Mutex
	objects map[string]any
}

func newForeignStore(w *world.World) *foreignStore {
	return &foreignStore{world: w, objects: map[string]any{}}
}

func (s *foreignStore) put(obj any) error {
	key, err := check.KeyFunction(obj)
	if err == nil && s.world.Functions.FailsIndexes() {
		err = fmt.Errorf("the script says that stores refuse: %w", world.ErrBad)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = obj
	return nil
}

func (s *foreignStore) Add(obj any) error    { return s.put(obj) }
func (s *foreignStore) Update(obj any) error { return s.put(obj) }

func (s *foreignStore) Delete(obj any) error {
	key, err := check.KeyFunction(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

func (s *foreignStore) Replace(list []any, _ string) error {
	objects := make(map[string]any, len(list))
	for _, obj := range list {
		// Refusing the whole list because of one object would cause endless lists.
		if key, err := check.KeyFunction(obj); err == nil {
			objects[key] = obj
		}
	}
	if s.world.Functions.FailsIndexes() {
		return fmt.Errorf("the script says that stores refuse: %w", world.ErrBad)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = objects
	return nil
}

func (s *foreignStore) Resync() error { return nil }

func (s *foreignStore) list() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.objects))
}
