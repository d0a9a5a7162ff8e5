package cachetest

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Create stores a new object and returns the stored copy. It ignores obj's resource version, sets a
// missing UID and creation time, and makes a missing name from generateName. It fails with
// AlreadyExists if the object exists.
func (s *Source) Create(obj runtime.Object) (runtime.Object, error) {
	stored, err := s.prepare(obj)
	if err != nil {
		return nil, err
	}
	return s.store(stored, func() error {
		if _, exists := s.history.content[stored.key()]; exists {
			return apierrors.NewAlreadyExists(s.resource, stored.meta.GetName())
		}
		return nil
	})
}

// Update replaces an object and returns the stored copy. Every update is a new version. It fails
// with NotFound, or with Conflict if obj has another resource version or UID than the stored
// object.
func (s *Source) Update(obj runtime.Object) (runtime.Object, error) {
	given, err := s.prepare(obj)
	if err != nil {
		return nil, err
	}
	return s.store(given, func() error {
		name := given.meta.GetName()
		existing, exists := s.history.content[given.key()]
		if !exists {
			return apierrors.NewNotFound(s.resource, name)
		}
		before := metaOf(existing)
		if v := given.meta.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
			return apierrors.NewConflict(
				s.resource,
				name,
				fmt.Errorf(
					"the object is at version %s, the update was made from %s",
					before.GetResourceVersion(), v),
			)
		}
		if uid := given.meta.GetUID(); uid != "" && uid != before.GetUID() {
			return apierrors.NewConflict(
				s.resource,
				name,
				fmt.Errorf(
					"the object has UID %s, the update was made for %s", before.GetUID(), uid),
			)
		}
		return nil
	})
}

// Apply creates or updates each object, whatever its resource version. If one cannot be stored,
// none is.
func (s *Source) Apply(objs ...runtime.Object) error {
	prepared := make([]candidate, 0, len(objs))
	for i, obj := range objs {
		given, err := s.prepare(obj)
		if err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
		prepared = append(prepared, given)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, given := range prepared {
		s.storeLocked(given)
	}
	return nil
}

// MustApply is Apply for tests. It ends the test if an object cannot be stored.
func (s *Source) MustApply(t testing.TB, objs ...runtime.Object) {
	t.Helper()
	if err := s.Apply(objs...); err != nil {
		t.Fatal(err)
	}
}

// Delete removes an object and returns its last state with the version of the deletion, as watches
// deliver it. It fails with NotFound. Unlike an API server, a Source has no finalizers: Delete
// removes the object at once and sets no deletion timestamp, whatever metadata.finalizers says, and
// an Update that empties it removes nothing.
func (s *Source) Delete(namespace, name string) (runtime.Object, error) {
	return s.remove(namespace, name, false)
}

// DeleteSilently removes an object without an event, so that a client can notice it only by a
// relist.
func (s *Source) DeleteSilently(namespace, name string) (runtime.Object, error) {
	return s.remove(namespace, name, true)
}

// candidate is a private copy of an object that is about to be stored.
type candidate struct {
	object runtime.Object
	meta   metav1.Object
}

func (c candidate) key() key {
	return key{Namespace: c.meta.GetNamespace(), Name: c.meta.GetName()}
}

// prepare copies and checks obj. It does not depend on the content.
func (s *Source) prepare(obj runtime.Object) (candidate, error) {
	if obj == nil {
		return candidate{}, apierrors.NewBadRequest("no object given")
	}
	copied, err := copyGiven(obj)
	if err != nil {
		return candidate{}, err
	}
	accessor, err := meta.Accessor(copied)
	if err != nil {
		return candidate{}, apierrors.NewBadRequest(
			fmt.Sprintf("%T has no object metadata: %v", obj, err))
	}
	if accessor.GetName() == "" && accessor.GetGenerateName() == "" {
		return candidate{}, apierrors.NewBadRequest(
			"metadata.name: an object needs a name or a generateName")
	}
	u, isUnstructured := copied.(*unstructured.Unstructured)
	if isUnstructured && u.GetKind() == "" && !s.options.GroupVersionKind.Empty() {
		u.SetGroupVersionKind(s.options.GroupVersionKind)
	}
	return candidate{object: copied, meta: accessor}, nil
}

// copyGiven copies a caller's object. An unstructured object with values that JSON does not have,
// such as an int, panics when it is copied; that becomes an error.
func copyGiven(obj runtime.Object) (copied runtime.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("%T cannot be copied: %v", obj, r))
		}
	}()
	return obj.DeepCopyObject(), nil
}

// store stores c as the newest version of its object, unless check returns an error. check is
// called with the lock held. It returns a copy of the stored object.
func (s *Source) store(c candidate, check func() error) (runtime.Object, error) {
	s.mu.Lock()
	err := check()
	if err == nil {
		s.storeLocked(c)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.object.DeepCopyObject(), nil
}

func (s *Source) storeLocked(c candidate) {
	next := change{version: s.history.version + 1, current: c.object}
	if c.meta.GetName() == "" {
		c.meta.SetName(s.freeNameLocked(c.key(), c.meta.GetGenerateName(), next.version))
	}
	next.key = c.key()
	if existing, exists := s.history.content[next.key]; exists {
		next.previous = existing
		before := metaOf(existing)
		if c.meta.GetUID() == "" {
			c.meta.SetUID(before.GetUID())
		}
		if created := c.meta.GetCreationTimestamp(); created.IsZero() {
			c.meta.SetCreationTimestamp(before.GetCreationTimestamp())
		}
	}
	if c.meta.GetUID() == "" {
		s.uids++
		c.meta.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids)))
	}
	if created := c.meta.GetCreationTimestamp(); created.IsZero() {
		// JSON keeps only whole seconds.
		c.meta.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	c.meta.SetResourceVersion(formatVersion(next.version))
	if s.exemplar == nil {
		s.exemplar = c.object
	}
	s.recordLocked(next)
}

// freeNameLocked returns a free name with the prefix. It is deterministic, so that tests are
// repeatable.
func (s *Source) freeNameLocked(in key, prefix string, n uint64) string {
	for ; ; n++ {
		in.Name = fmt.Sprintf("%s%05d", prefix, n)
		if _, inUse := s.history.content[in]; !inUse {
			return in.Name
		}
	}
}

func (s *Source) remove(namespace, name string, hidden bool) (runtime.Object, error) {
	k := key{Namespace: namespace, Name: name}
	s.mu.Lock()
	existing, exists := s.history.content[k]
	if !exists {
		s.mu.Unlock()
		return nil, apierrors.NewNotFound(s.resource, name)
	}
	removal := change{version: s.history.version + 1, key: k, previous: existing, hidden: hidden}
	s.recordLocked(removal)
	s.mu.Unlock()
	return copyAt(existing, removal.version), nil
}

// recordLocked adds a change to the history and wakes the open watches.
func (s *Source) recordLocked(c change) {
	s.history.record(c)
	if limit := s.options.HistoryLimit; limit > 0 && len(s.history.log) > limit {
		oldest := s.history.log[len(s.history.log)-limit-1].version
		s.history.compacted = max(s.history.compacted, oldest)
		s.history.trim(oldest)
	}
	s.wakeLocked()
}

// trimLocked drops the compacted part of the history that no open watch still has to send.
func (s *Source) trimLocked() {
	unsent := s.history.compacted
	for w := range s.watches {
		unsent = min(unsent, w.cursor)
	}
	s.history.trim(unsent)
}

func (s *Source) wakeLocked() {
	for w := range s.watches {
		w.wakeUp()
	}
}
