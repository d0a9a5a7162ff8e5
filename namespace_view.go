package cache

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache/internal/table"
)

// scope is a part of a store: the keys that begin with a prefix, up to which version they are
// applied, and whether they have been listed. The empty prefix is everything. Entries do not refer to
// their scope, so listing one reads all entries of the store.
type scope struct {
	prefix string

	// The storage's mu guards these. version is changed with setLocked.
	version string
	// committed is true once a replacement was committed.
	committed bool
}

func (s *scope) has(key string) bool { return strings.HasPrefix(key, s.prefix) }

// hasKey is has.
func (s *scope) hasKey(key table.Key) bool { return s.prefix == "" || key.IsIn(s.prefix) }

// refusal is the error of an object whose key is outside. Its metadata tell a source that sends too
// much from a key function that does not fit a view.
func (s *scope) refusal(key string, obj any) error {
	name, err := ObjectToName(finalStateOf(obj))
	if err == nil && name.Namespace+"/" == s.prefix {
		return fmt.Errorf("key %q does not begin with %q, although the object is of that namespace: the key function does not fit; taken for an %w",
			key, s.prefix, ErrOtherNamespace)
	}
	return fmt.Errorf("%w: key %q does not begin with %q", ErrOtherNamespace, key, s.prefix)
}

// keyFunc is a store's key function for objects in the scope.
func (s *scope) keyFunc(whole KeyFunc) KeyFunc {
	return func(obj any) (string, error) {
		key, err := whole(obj)
		switch {
		case err != nil || key == "" || s.has(key):
		case isUndecoded(obj) && key == readableName(obj) && !strings.Contains(key, "/"):
			// Its namespace could not be read, and can be no other than this.
			key = s.prefix + key
		default:
			err = s.refusal(key, obj)
		}
		return key, err
	}
}

// InNamespace returns the part of store whose keys begin with "namespace/", as a
// Store that a reflector can feed, or a controller that has it as its Config.Store.
// With one view and one reflector for each, several namespaces share one store and
// its indexes, and each has its own lists, versions and failures; Config.Namespaces
// does all of that.
//
// Nothing that is done through the view concerns the rest of the store. Reading
// sees the namespace alone. Writing an object whose key is outside fails with
// ErrOtherNamespace, in a KeyError or an ObjectError, and is quarantined where a
// source sent it. A replacement deletes keys of the namespace only; the view's
// first is visible in parts, whatever other views have been through. The store's
// transform and indexes apply.
//
// A view has an applied version of its own. As soon as there is a view, the
// store's is the lowest of those of its views, if each has one and they can be
// compared, else empty: it never claims more than the store holds. So make the
// views before the first of them is fed, and none for a namespace that nobody will
// feed; to read, use an index. Versions of several servers are in no order worth
// anything: ask the views.
//
// What is written to the store itself concerns all of it: Replace and BeginReplace
// of the store put away what views have brought, without a word to their versions.
// Use one way or the other. A version that the store itself was told (Replace,
// Bookmark) holds for the namespaces whose views have none, and is one of those of
// which the lowest counts.
//
// Listing a view's objects or keys goes through all entries of the store: 1 to 2 ms
// for 100,000. So do the end of a replacement and, under the queue's lock, the end of
// a list and each Resync of a DeltaFIFO over the view; with a resync period that is
// once for each namespace. A status goes through all that the store holds back, once
// for each namespace. Several calls for one namespace return the same view.
// InNamespace may be called concurrently. It panics if store is not one of NewStore
// or NewIndexer, in particular if it is itself a view, and if namespace is empty or
// contains a slash, with which one view could be a part of another: these are
// mistakes in the program.
func InNamespace(store Store, namespace string) Store {
	mustHave(namespace != "", "InNamespace: the namespace is empty; all namespaces together are the store itself")
	mustHave(!strings.Contains(namespace, "/"), fmt.Sprintf("InNamespace: namespace %q contains a slash", namespace))
	_, view := store.(*keyedStore)
	mustHave(!view, "InNamespace: the store is a view of a namespace already")
	whole, own := store.(*cache)
	mustHave(own && whole != nil, "InNamespace: the store is not one of NewStore or NewIndexer")
	return whole.inNamespace(namespace)
}

func (c *cache) inNamespace(namespace string) (view *keyedStore) {
	m := c.storage
	m.moveVersion(func() {
		if view = m.views[namespace]; view != nil {
			return
		}
		if m.views == nil {
			m.views = map[string]*keyedStore{}
		}
		s := &scope{prefix: namespace + "/"}
		view = &keyedStore{scoped: scoped{m, s}, keyFunc: s.keyFunc(c.keyFunc), transformer: c.transformer}
		m.views[namespace] = view
		m.scopes = append(m.scopes, s)
		m.version = m.lowestLocked()
	})
	return view
}

// setLocked moves a scope's version, and that of the store. It looks at all views only if the lowest of
// them may have moved. The caller holds mu.
func (m *storage) setLocked(s *scope, version string) {
	before := s.version
	if s.version = version; before == m.version || !versionBefore(m.version, version) {
		m.version = m.lowestLocked()
	}
}

// lowestLocked is the version up to which the store and its views hold all that their sources had, empty
// if that cannot be said. A version of the store itself holds for the views that have none.
func (m *storage) lowestLocked() string {
	lowest := m.whole.version
	for i, view := range m.scopes {
		switch {
		case view.version != "" && lowest == "":
			lowest = view.version
		case view.version != "":
			if lowest = lowestVersion(lowest, view.version); lowest == "" {
				return ""
			}
		case m.whole.version == "":
			m.scopes[0], m.scopes[i] = view, m.scopes[0] // the next search ends here
			return ""
		}
	}
	return lowest
}

// lowestVersion returns the lowest of one or more versions, "" if two different ones cannot be compared,
// as an empty one with any other.
func lowestVersion(versions ...string) string {
	lowest := versions[0]
	for _, version := range versions[1:] {
		if version == lowest {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(version, lowest)
		if err != nil {
			return ""
		}
		if order < 0 {
			lowest = version
		}
	}
	return lowest
}

// moveVersion changes a version, and nothing else.
func (m *storage) moveVersion(move func()) {
	m.table.Relabel(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		move()
	})
	m.showVersion()
}
