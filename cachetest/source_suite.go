package cachetest

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// MarkAnnotation is the annotation in which a backend keeps the mark that
// ListerWatcherRig.Create and Update are given.
const MarkAnnotation = "cachetest.watchmirror/mark"

// ListerWatcher is what every source of a reflector has. A source that also has
// ListWithContext and WatchWithContext is asked by these, as a reflector does.
type ListerWatcher interface {
	List(options metav1.ListOptions) (runtime.Object, error)
	Watch(options metav1.ListOptions) (watch.Interface, error)
}

// ListerWatcherConfig says to TestListerWatcher how to make a source and what to
// expect of it. New is required.
type ListerWatcherConfig struct {
	// New makes a source whose backend is empty. It is called once for each
	// check, by the check's goroutine and inside of its bubble if there is one.
	// What it starts it must end by t.Cleanup.
	New func(t testing.TB) ListerWatcherRig

	// Virtual runs each check in a bubble of testing/synctest. It is for sources
	// in process, also those over a Listener: a socket would stop virtual time. In
	// a bubble the suite needs no real time, and what a source leaves running
	// when the check is over ends the test as a deadlock.
	Virtual bool
	// Patience is how long the suite waits for what must happen. Zero means ten
	// seconds, ten minutes of virtual time.
	Patience time.Duration
	// Quiet is how long the suite watches that nothing happens. Zero means 50
	// milliseconds, ten seconds of virtual time. For a source in another process
	// it should be several times what an event takes to arrive.
	Quiet time.Duration

	// Mark reads the mark of an object. Default: the annotation MarkAnnotation.
	Mark func(obj runtime.Object) string

	// NoBookmarks: the source sends none although they are allowed. A reflector
	// can do without, at the price of a list where the kind is quiet while others
	// change.
	NoBookmarks bool
	// NoTimeouts: the source takes no notice of timeoutSeconds. A reflector ends
	// such watches itself, later.
	NoTimeouts bool
}

// ListerWatcherRig is a source and the way to change what it shows. Source,
// Create, Update and Delete are required.
//
// A name is unique among the objects and is their metadata.name; kind, namespace
// and the rest are free, but the same for all. The functions return when the
// change is made: from then on a list at resource version "" shows it. They are
// called by one goroutine at a time.
type ListerWatcherRig struct {
	Source ListerWatcher

	// Create makes an object with the mark.
	Create func(name, mark string) error
	// Update gives the object the mark, which it has not had before.
	Update func(name, mark string) error
	// Delete deletes the object.
	Delete func(name string) error

	// Compact makes the backend forget its history: a watch from any version before
	// the present one, and the continue tokens of such, are expired when it returns.
	// Without it expiry is not checked.
	Compact func() error
	// EndWatches has the backend end all open watches, in the way they end in the
	// normal course of things. Without it that is not checked.
	EndWatches func() error
	// SendBookmarks has the backend send a bookmark to every open watch that
	// allows them. Without it the suite waits for Patience in virtual time, and
	// in real time does not check them.
	SendBookmarks func() error
}

// TestListerWatcher checks that a source keeps what a reflector relies on:
// subtests, each with the name of a promise, that say on failure what a reflector
// would make of it. What a source does not have is skipped with the reason.
//
// It is for the tests of a source. It asks the source only what a
// reflector would, changes its backend through the rig, and starts no goroutine
// that it does not wait for, unless a call of the source hangs.
func TestListerWatcher(t *testing.T, config ListerWatcherConfig) {
	t.Helper()
	if config.New == nil {
		t.Fatal("cachetest.TestListerWatcher: config.New is nil")
	}
	runChecks(t, config.pace(), sourceChecks(), config.start)
}

func (c ListerWatcherConfig) pace() pace { return newPace(c.Virtual, c.Patience, c.Quiet) }

// sourceTrial is a source under check.
type sourceTrial struct {
	ListerWatcherRig
	pace
	config ListerWatcherConfig
	ctx    context.Context
}

func (c ListerWatcherConfig) start(ctx context.Context, t testing.TB) *sourceTrial {
	t.Helper()
	rig := c.New(t)
	if rig.Source == nil || rig.Create == nil || rig.Update == nil || rig.Delete == nil {
		t.Fatal("cachetest.TestListerWatcher: config.New must set Source, Create, Update and Delete")
	}
	if c.Mark == nil {
		c.Mark = func(obj runtime.Object) string { return annotatedMark(obj) }
	}
	return &sourceTrial{ListerWatcherRig: rig, pace: c.pace(), config: c, ctx: ctx}
}

// sourceChecks are the promises of a source, the simple ones first: where one of
// these is broken, so are many that follow.
func sourceChecks() []check[*sourceTrial] {
	return []check[*sourceTrial]{
		{name: "an empty list has a version", run: checkEmptyList},
		{name: "a list has a version and each object once", run: checkList},
		{name: "a list is no older than what was written and asked for", run: checkListIsNew},
		{name: "a list without a context is the same", run: checkContextForms},
		{name: "pages make one consistent list", run: checkPages},
		{name: "items taken one by one are those of the list", lacks: lacksItems, run: checkItems},
		{name: "an error ends the taking of items", lacks: lacksItems, run: checkItemsRefused},
		{name: "a watch continues where the list ended", run: checkWatchFromList},
		{name: "a watch delivers what happens in the order in which it happens", run: checkLiveWatch},
		{name: "a watch resumes after any event", run: checkResume},
		{name: "a deletion delivers the last state at a version of its own", run: checkDeletion},
		{name: "an object made again is another one", run: checkRecreation},
		{name: "events are of the type that the list has", run: checkTypes},
		{name: "a bookmark comes only where it is allowed", run: checkNoBookmark},
		{name: "a watch resumes after a bookmark", lacks: lacksBookmarks, run: checkBookmark},
		{name: "a watch ends when its time is up", lacks: lacksTimeouts, run: checkTimeout},
		{name: "a watch that the backend ends closes and can be resumed", lacks: lacksEndWatches, run: checkBackendEnd},
		{name: "Stop ends a watch", run: checkStop},
		{name: "the context ends a watch", lacks: lacksContext, run: checkContextEnd},
		{name: "an ended watch leaves no goroutine", run: checkGoroutines},
		{name: "watches are independent of each other", run: checkIndependence},
		{name: "a watch that is not read holds back nobody", run: checkUnread},
		{name: "objects are nobody else's", run: checkSharing},
		{name: "a watch from a forgotten version is answered as expired", lacks: lacksCompact, run: checkExpiredWatch},
		{name: "a list is possible after expiry", lacks: lacksCompact, run: checkListAfterExpiry},
		{name: "a continue token of a forgotten version is answered as expired", lacks: lacksCompact, run: checkExpiredToken},
		{name: "a streaming list is whole and ends in a bookmark", lacks: lacksStreaming, run: checkStreaming},
		{name: "a streaming list of nothing ends too", lacks: lacksStreaming, run: checkEmptyStreaming},
	}
}
