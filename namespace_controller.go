package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache/internal/tasks"
)

// namespaceController is the Controller of several namespaces: one whole controller
// for each, on a view of the store. What they share is the store, the handler, which
// they take turns to call, and their end: a panic in one ends all. Nobody waits for
// another's source, least of all with the turn.
type namespaceController struct {
	name string
	// store is the one behind the views.
	store   Store
	members []*namespaceMember
	synced  *allDone

	runs oneRun
}

// namespaceMember is the part of a namespaceController that has one namespace.
type namespaceMember struct {
	namespace string
	*controller
}

func newNamespaceController(config Config) *namespaceController {
	config.validateNamespaces()
	base := config.ReflectorOptions.Name
	if base == "" {
		base = firstCallerOutside()
	}
	c := &namespaceController{name: base, store: config.Store}
	var shared turns
	if config.Handler != nil {
		shared = newTurns()
	}
	var checkers []DoneChecker
	for _, namespace := range slices.Sorted(maps.Keys(config.Namespaces)) {
		member := newController(config.inNamespace(base, namespace))
		member.turns = shared
		c.members = append(c.members, &namespaceMember{namespace, member})
		checkers = append(checkers, member.HasSyncedChecker())
	}
	c.synced = newAllDone(base, checkers)
	return c
}

// validateNamespaces panics for what validate cannot know: it sees one source, and
// a view in place of the store.
func (c *Config) validateNamespaces() {
	mustHave(isNilPointer(c.ListerWatcher), "Config has both a ListerWatcher and Namespaces")
	mustHave(c.Queue == nil && c.Process == nil && c.ProcessBatch == nil,
		"Config.Namespaces needs a Config with neither Queue nor Process: each namespace has a queue of its own")
	whole, own := c.Store.(*cache)
	mustHave(own && whole != nil, "Config.Namespaces needs a Config.Store of NewStore or NewIndexer")
	mustHave(c.KeyFunction == nil, "Config.KeyFunction is set, which Config.Namespaces does not look at: the Store's is used")
	for _, namespace := range slices.Sorted(maps.Keys(c.Namespaces)) {
		mustHave(namespace != "", "Config.Namespaces has a source without a namespace; for all namespaces set ListerWatcher")
		mustHave(!isNilPointer(c.Namespaces[namespace]), fmt.Sprintf("Config.Namespaces: the source of %q is nil", namespace))
	}
}

// inNamespace is the Config of one namespace's controller.
func (c Config) inNamespace(base, namespace string) Config {
	c.ListerWatcher, c.Namespaces = c.Namespaces[namespace], nil
	c.Store = InNamespace(c.Store, namespace)
	c.ReflectorOptions.Name = base + "/" + namespace
	return c
}

func (c *namespaceController) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

func (c *namespaceController) RunWithContext(ctx context.Context) {
	if !c.runs.begin() {
		c.members[0].reflector.tell(ctx, fmt.Errorf("controller of %s: %w", c.name, ErrAlreadyRan))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// What was synced in the very moment of the end counts, too.
	defer c.synced.check()
	g := tasks.New(c.members[0].reflector.clock, cancel, panicError)
	for _, member := range c.members {
		g.Go(func() {
			defer cancel()
			member.RunWithContext(ctx)
		})
	}
	g.Go(func() { c.synced.await(ctx) })
	g.Wait()
}

func (c *namespaceController) HasSynced() bool { return c.synced.check() }

func (c *namespaceController) HasSyncedChecker() DoneChecker { return c.synced }

// SyncedIn implements NamespaceSyncer.
func (c *namespaceController) SyncedIn(namespace string) (DoneChecker, bool) {
	for _, member := range c.members {
		if member.namespace == namespace {
			return namedDone{member.reflector.name, member.HasSyncedChecker()}, true
		}
	}
	return nil, false
}

// namedDone gives a checker another name: all queues have the same.
type namedDone struct {
	name string
	DoneChecker
}

func (n namedDone) Name() string { return n.name }

func (c *namespaceController) LastSyncResourceVersion() string {
	return c.store.LastStoreSyncResourceVersion()
}
