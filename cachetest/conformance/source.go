package conformance

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// MarkAnnotation is the annotation with the mark of ListerWatcherRig.Create and Update.
const MarkAnnotation = "cachetest.watchmirror/mark"

// SelectedLabel is the label that ListerWatcherRig.Label sets.
const SelectedLabel = "cachetest.watchmirror/selected"

// ListerWatcher is a source, like cache.Source. List and Watch are checked if a source has them.
type ListerWatcher interface {
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// ListerWatcherConfig describes a source to TestListerWatcher. New is required.
type ListerWatcherConfig struct {
	// New makes a source with an empty backend. It is called for each check, inside its bubble if Virtual is set. Use
	// t.Cleanup to end what it starts.
	New func(t testing.TB) ListerWatcherRig

	// Virtual runs each check in a bubble of testing/synctest, for sources in process, including those over a Listener.
	// It takes no real time, and a goroutine that a source leaves behind fails the check as a deadlock. Time does not
	// advance between calls: take UIDs and versions from a counter or crypto/rand.
	Virtual bool
	// Patience is how long the suite waits for an event. Default: one minute, or ten minutes of virtual time.
	Patience time.Duration
	// Quiet is how long the suite checks that no event comes. For a source in another process, set it to several times
	// as long as an event takes. Default: 50 milliseconds, or ten seconds of virtual time.
	Quiet time.Duration

	// Mark returns the mark of an object. Default: the annotation MarkAnnotation.
	Mark func(obj runtime.Object) string

	// NoBookmarks: the source sends none, even if allowed. A reflector then lists more often if its resource is quiet
	// while others change.
	NoBookmarks bool
	// NoTimeouts: the source ignores timeoutSeconds. A reflector ends such watches itself, later.
	NoTimeouts bool
}

// ListerWatcherRig is a source and the functions that change its backend. Source, Create, Update and Delete are
// required.
//
// A name is unique and is the object's metadata.name; kind and namespace may be any, but the same for all objects. When
// a function returns, a list at resource version "" must show its change, and open watches must deliver it as a
// separate event. A source that polls its backend polls in the function (sources.PollingSource.Poll). One goroutine at
// a time calls them.
type ListerWatcherRig struct {
	Source ListerWatcher

	// Create creates an object with the mark.
	Create func(name, mark string) error
	// Update sets the object's mark, to one that it has not had before.
	Update func(name, mark string) error
	// Delete deletes the object.
	Delete func(name string) error

	// Label sets the object's label SelectedLabel, and leaves its mark; Update leaves the label. If nil, it is not checked whether objects enter and leave a label selector.
	Label func(name, value string) error
	// Compact expires all versions before the current one, and their continue tokens, and leaves the objects as they
	// are. If nil, expiry is not checked.
	Compact func() error
	// EndWatches ends all open watches normally. If nil, that is not checked.
	EndWatches func() error
	// SendBookmarks sends a bookmark to every open watch that allows them. If nil, the suite waits for Patience in
	// virtual time, and does not check bookmarks in real time.
	SendBookmarks func() error
}

// TestListerWatcher checks that a source keeps the promises on which a reflector relies, one subtest each. A failure
// names the consequence for a reflector. Promises that do not apply to the source are skipped, with the reason. The
// suite makes a reflector's requests, changes the backend through the rig, and waits for its goroutines unless a call
// of the source hangs.
func TestListerWatcher(t *testing.T, config ListerWatcherConfig) {
	t.Helper()
	if config.New == nil {
		t.Fatal("conformance.TestListerWatcher: config.New is nil")
	}
	runChecks(t, config.pace(), sourceChecks(), config.start)
}

func (c ListerWatcherConfig) pace() pace { return newPace(c.Virtual, c.Patience, c.Quiet) }

// sourceTrial is a source under test.
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
		t.Fatal("conformance.TestListerWatcher: config.New must set Source, Create, Update and Delete")
	}
	if c.Mark == nil {
		c.Mark = func(obj runtime.Object) string { return annotatedMark(obj) }
	}
	return &sourceTrial{ListerWatcherRig: rig, pace: c.pace(), config: c, ctx: ctx}
}

// sourceChecks returns the checks of a source, the simple ones first: later ones depend on them.
func sourceChecks() []check[*sourceTrial] {
	return []check[*sourceTrial]{
		{name: "Mark reads the mark of a listed object", run: checkMark, decisive: true},
		{name: "an empty list has a version", run: checkEmptyList},
		{name: "a list has a version and each object once", run: checkList},
		{name: "a list is no older than the last write and the requested version", run: checkListIsNew},
		{name: "a list without a context is equal", lacks: lacksPlainForms, run: checkContextForms},
		{name: "pages make one consistent list", run: checkPages},
		{name: "ListItems passes the items of the list", lacks: lacksItems, run: checkItems},
		{name: "an error of take ends ListItems", lacks: lacksItems, run: checkItemsRefused},
		{name: "a watch continues where the list ended", run: checkWatchFromList},
		{name: "a watch delivers changes in their order", run: checkLiveWatch},
		{name: "a watch resumes after any event", run: checkResume},
		{name: "a deletion delivers the last state at a version of its own", run: checkDeletion},
		{name: "a re-created object has another UID", run: checkRecreation},
		{name: "an object keeps its UID, and its version until it changes", run: checkIdentity},
		{name: "events have the type of the list's items", run: checkTypes},
		{name: "bookmarks are sent only if allowed", run: checkNoBookmark},
		{name: "a watch resumes after a bookmark", lacks: lacksBookmarks, run: checkBookmark},
		{name: "a watch ends after timeoutSeconds", lacks: lacksTimeouts, run: checkTimeout},
		{name: "a watch that the backend ends is closed and can be resumed", lacks: lacksEndWatches, run: checkBackendEnd},
		{name: "Stop ends a watch", run: checkStop},
		{name: "the context ends a watch", run: checkContextEnd},
		{name: "an ended watch leaves no goroutine", run: checkGoroutines},
		{name: "watches are independent of each other", run: checkIndependence},
		{name: "a watch that is not read delays no other", run: checkUnread},
		{name: "a watch that is read late loses nothing", run: checkReadLate},
		{name: "a list made during changes has those up to its version", run: checkListDuringChanges},
		{name: "objects are the caller's", run: checkSharing},
		{name: "a watch from a compacted version is expired", lacks: lacksCompact, run: checkExpiredWatch},
		{name: "a list is possible after expiry", lacks: lacksCompact, run: checkListAfterExpiry},
		{name: "a continue token of a compacted version is expired", lacks: lacksCompact, run: checkExpiredToken},
		{name: "a streaming list is complete and ends in a bookmark", lacks: lacksStreaming, run: checkStreaming},
		{name: "an empty streaming list ends too", lacks: lacksStreaming, run: checkEmptyStreaming},
		{name: "a version that is not reached is refused", run: checkUnreached},
		{name: "a label selector is refused or obeyed", run: checkSelector},
		{name: "an object that leaves a label selector is deleted", lacks: lacksLabel, run: checkLeavesSelector},
		{name: "sendInitialEvents is refused or obeyed", lacks: lacksListsOnly, run: checkInitialEvents},
	}
}
