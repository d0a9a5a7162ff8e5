// A whole store or one namespace of it, with its own version. Which keys and which version has a
// view, and when has a store reached a version?

package cache

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache/internal/table"
)

// scope is a store, or the part of one whose keys begin with prefix. Entries do not refer to their
// scope, so listing a part reads the whole store.
type scope struct {
	storage *storage
	prefix  string
	// version is the applied one. committed is true once a replacement was committed.
	version   atomic.Pointer[string]
	committed bool
}

// LastStoreSyncResourceVersion returns the applied version. A store with views of namespaces has
// the lowest one of them: see InNamespace.
func (s *scope) LastStoreSyncResourceVersion() string {
	if s == &s.storage.whole {
		return *s.storage.applied.Load()
	}
	return *s.version.Load()
}

func (s *scope) has(key string) bool {
	return s.prefix == "" || strings.HasPrefix(key, s.prefix)
}

// hasKey is has for a Key, without building its text.
func (s *scope) hasKey(key table.Key) bool { return s.prefix == "" || key.IsIn(s.prefix) }

// setVersion sets the version of a scope, and that of the store. The caller holds the table's lock.
func (s *storage) setVersion(of *scope, version string) {
	before := *of.version.Load()
	own := new(version)
	of.version.Store(own)
	if len(s.views) == 0 {
		s.applied.Store(own)
		return
	}
	s.replaceVersion(before, version)
	s.applied.Store(new(s.lowest()))
}

// replaceVersion records that a view, or the whole store, has another version.
func (s *storage) replaceVersion(before, after string) {
	if before != "" {
		s.versions.remove(before)
	}
	if after != "" {
		s.versions.add(after)
	}
}

// lowest returns the lowest version of a store with views and of these, empty if they cannot be
// compared. A view without a version counts as having the store's.
func (s *storage) lowest() string {
	hasWhole := *s.whole.version.Load() != ""
	views := s.versions.total
	if hasWhole {
		views--
	}
	if !hasWhole && views < len(s.views) {
		return ""
	}
	return s.versions.lowest()
}

// versionReached reports whether a store at version has everything up to wanted.
func versionReached(version, wanted string) bool {
	return version == wanted || versionBefore(wanted, version)
}

// waitForVersion waits until the store has everything up to version, ctx ends or ended is closed.
func (s *scope) waitForVersion(ctx context.Context, version string, ended <-chan struct{}) error {
	seen := ""
	for {
		moved := s.storage.versionMoved.changed()
		have := s.LastStoreSyncResourceVersion()
		if versionReached(have, version) {
			return nil
		}
		err := s.canReach(have, version)
		if err != nil {
			return err
		}
		if versionBefore(have, seen) {
			return &VersionRegressionError{Kind: "store", Current: seen, Received: have}
		}
		seen = have

		select {
		case <-moved:
		case <-ended:
			return fmt.Errorf("waiting for resource version %s: %w", version, ErrInformerStopped)
		case <-ctx.Done():
			const text = "waiting for resource version %s, the store has %q: %w"
			return fmt.Errorf(text, version, have, context.Cause(ctx))
		}
	}
}

// canReach returns an error if a store at a version can never be found to have reached another.
func (s *scope) canReach(have, version string) error {
	_, err := resourceversion.CompareResourceVersion(version, version)
	if err != nil {
		return fmt.Errorf("resource version %q cannot be waited for: %w", version, err)
	}
	if have == "" {
		return nil
	}
	_, err = resourceversion.CompareResourceVersion(have, version)
	if err == nil {
		return nil
	}
	// The version of some sources is not a number while they have no object.
	now := s.storage.table.Snapshot()
	if now.Version != have || now.Len() == 0 {
		return nil
	}
	const text = "resource version %s cannot be compared with the store's %q: %w"
	return fmt.Errorf(text, version, have, err)
}
