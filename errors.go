package cache

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Every sentinel of the package stands here, each with what causes it and what to do
// about it, and so do the typed causes, but for those of changed shared objects
// (mutation_detector.go). They reach the caller as return values, or
// the error handler and the status where there is nobody to return them to.
var (
	// ErrFIFOClosed is returned by Pop and PopBatch once the queue is closed and
	// empty. It is how a consumer's loop ends; nothing is to be done.
	ErrFIFOClosed = errors.New("queue is closed")

	// ErrZeroLengthDeltasObject is the cause in a KeyError when a key is asked
	// of an empty Deltas. Pass Deltas as they came out of the queue.
	ErrZeroLengthDeltasObject = errors.New("an empty Deltas has no key")

	// ErrAlreadyRan is reported when Run is called a second time on a controller or
	// an informer, or concurrently on a reflector or a set of informers. The call that
	// reports it returned at once and changed nothing; make a new one to run again.
	ErrAlreadyRan = errors.New("already running or already run")

	// ErrNilHandler is the cause when an informer is given a nil where it needs a
	// handler. Leave the call out.
	ErrNilHandler = errors.New("handler is nil: pass one, or leave the call out")

	// ErrInformerStarted is the cause when something is set of an informer whose run
	// has begun; nothing has changed. Set it before Run, or in the options.
	ErrInformerStarted = errors.New("informer has started: it is too late to set it")

	// ErrForeignRegistration is the cause when an informer is given a handle that is
	// not its own. Keep the handle that AddEventHandler returned, and give it to the
	// same informer.
	ErrForeignRegistration = errors.New("registration belongs to another informer")

	// ErrHandlerRunning is returned by ShutDownEventHandler when a call of the handler has not
	// returned after 30 s. The handler was removed. It hangs, or it shuts itself down and so
	// waits for itself: use RemoveEventHandler there.
	ErrHandlerRunning = errors.New("handler was removed, but a call of it is still running: it hangs, or waits for its own removal")

	// ErrHandlerPanicked is the cause in a ProcessError when a handler, or Process,
	// panicked and the process lived on; the panic handlers of apimachinery have had
	// the value and its stack.
	ErrHandlerPanicked = errors.New("panicked")

	// ErrHandlerExited is reported when a handler ended its goroutine by runtime.Goexit,
	// as a failing assertion of a test does. It is not called any more. It is also the
	// Err of its DoneChecker, also where its panic has ended the run.
	ErrHandlerExited = errors.New("handler ended its goroutine and is not called any more")

	// ErrEmptyKey is the cause in a KeyError when the key function returned an
	// empty key, for MetaNamespaceKeyFunc that of an object without a name.
	ErrEmptyKey = errors.New("key is empty")

	// ErrNilObject is the cause when a nil, or a nil pointer, stands where an
	// object should be.
	ErrNilObject = errors.New("object is nil")

	// ErrQuarantined is found, by errors.Is, in every *ObjectError, and so in what Get and
	// GetByKey of a store, and Get of a lister, return for a key that has no state because
	// the only one that has come could not be applied. It is no "not found": the source has
	// the object. The error's cause says what is wrong with it; fix that, or wait for a later
	// state.
	ErrQuarantined = errors.New("object is quarantined")

	// ErrOtherNamespace is the cause, in a KeyError or an ObjectError, when a
	// view of one namespace (InNamespace, Config.Namespaces) is given an object
	// of another, or of none, as its key has it. A source that sends such ignores
	// the namespace that it was asked for: give the view one that lists and watches
	// just that. Where the message says that the object is of the namespace, the
	// key function does not put that first: make the store with one that does, as
	// MetaNamespaceKeyFunc.
	ErrOtherNamespace = errors.New("object of another namespace")

	// ErrNoListFunc and ErrNoWatchFunc are returned by a ListWatch that has
	// neither form of the function. Set ListWithContextFunc and
	// WatchFuncWithContext.
	ErrNoListFunc  = errors.New("ListWatch has neither ListFunc nor ListWithContextFunc")
	ErrNoWatchFunc = errors.New("ListWatch has neither WatchFunc nor WatchFuncWithContext")

	// ErrNilWatch is the cause when a source returned neither a watch nor an
	// error, ErrNilList when it returned neither a list nor an error. Both are
	// defects of the source.
	ErrNilWatch = errors.New("source returned no watch and no error")
	ErrNilList  = errors.New("source returned no list and no error")

	// ErrTableList is the cause when a source answers with a Table, which has
	// rows and no objects. Ask for the objects: drop the Table media type from
	// the Accept header.
	ErrTableList = errors.New("source answered with a Table instead of objects")

	// ErrWatchOverdue is reported when a watch was still open 30 s after the
	// time at which the server had been asked to end it: the connection is half
	// open. The watch was ended and is opened again from the last version.
	ErrWatchOverdue = errors.New("watch outlived its timeout; the connection is taken for half open")

	// ErrNoInitialEventsEnd is the cause when a streaming list was silent for 10 s,
	// or ended, before the bookmark that ends it. The reflector lists instead: after
	// a silence at once, but for the usual pause, otherwise after two attempts.
	ErrNoInitialEventsEnd = errors.New("streaming list brought no initial-events-end bookmark")

	// ErrHandlerRemoved is the Err of a registration's checker when the handler was
	// removed before it had handled the first list: it never will. Remove it later,
	// or do not wait for it.
	ErrHandlerRemoved = errors.New("handler was removed before it had handled the first list")

	// ErrInformerStopped is the cause when something is asked of an informer whose run
	// has ended, or begins to end, and the Err of a checker whose wait that ended. Who
	// stopped it on purpose has nothing to do; to go on, make a new informer and run
	// that, for none runs twice.
	ErrInformerStopped = errors.New("informer has stopped: make a new one")

	// ErrNothingToWaitFor is the cause when a wait is given nothing, or a nil, to
	// wait for. Pass what HasSyncedChecker of an informer, a controller or a
	// registration returns, once these exist.
	ErrNothingToWaitFor = errors.New("nothing to wait for")
)

// Causes that a program need not tell from others, and so cannot.
var (
	// errNoKind is the cause when GetObjectKind of an object returns nil.
	errNoKind = errors.New("GetObjectKind returned nil")

	// errDropped is what a consumer returns to the queue for what it was handed
	// after its context had ended: it was not processed, and must not count as
	// if it had been.
	errDropped = errors.New("dropped: the context has ended")
	// errTakenAtOnce and errTakenLate are what a source's ListItems gets of take, and
	// the list ends with, if it breaks the rules of ItemLister. Items would be lost.
	errTakenAtOnce = errors.New("source called take of ListItems while another call of it was running")
	errTakenLate   = errors.New("source called take after ListItems had returned")
	// errSourceExited is the answer of a call into the source that ended its goroutine
	// (runtime.Goexit, as a failing assertion of a test does) and did not return.
	errSourceExited = errors.New("source ended its goroutine and returned nothing")
)

// KeyError is returned where no key could be made for an object. It has
// client-go's shape; its message names the object's type and, if it has one, its
// name, and never prints the object. One that is kept in a status holds the
// object's name, an ObjectName, as Obj.
type KeyError struct {
	Obj any
	Err error
}

// Error says which object has no key, and why.
func (k KeyError) Error() string {
	return fmt.Sprintf("no key for %s: %v", describe(k.Obj), k.Err)
}

// Unwrap returns the cause.
func (k KeyError) Unwrap() error { return k.Err }

// withoutObject makes an error fit to be kept: a KeyError in it that holds an
// object is returned holding the object's name instead.
func withoutObject(err error) error {
	var key KeyError
	if !errors.As(err, &key) {
		return err
	}
	if _, light := key.Obj.(ObjectName); light {
		return err
	}
	name, unnamed := ObjectToName(key.Obj)
	if unnamed != nil {
		return KeyError{Err: key.Err}
	}
	return KeyError{Obj: name, Err: key.Err}
}

// ObjectError says that one object could not be taken: it is quarantined. The
// state that was there before stays, other objects are not held back, and the
// object is tried again when it next arrives. A store that returns it (wrapped
// or not) makes the reflector quarantine the object; any other error of a store
// makes it list anew.
type ObjectError struct {
	// Key is the object's key; without a readable key, its namespace and name,
	// or its place ("item 3 of the list").
	Key string
	// ResourceVersion is the version of the state that was not taken, if known.
	ResourceVersion string
	// Stage is what failed.
	Stage Stage
	// Err is the cause. It does not hold the object.
	Err error

	// repeated marks a failure that has been reported for this very version.
	repeated bool
	// object is the object's own name, where Key may be one that a store's key function made; empty
	// if nobody said.
	object identity
	// storeKey is the key by which readers of the store ask for the object, empty if that is Key.
	storeKey string
}

// Stage says which step an object could not pass.
type Stage string

// The steps on an object's way in.
const (
	StageDecode    Stage = "decode"    // bytes to object: the source's
	StageType      Stage = "type"      // not of the expected type or kind
	StageMetadata  Stage = "metadata"  // nil, or without metadata
	StageKey       Stage = "key"       // the key function failed
	StageTransform Stage = "transform" // the transform failed
	StageIndex     Stage = "index"     // an index function failed
	StageProcess   Stage = "process"   // the consumer's Process, or its store, failed
)

// Error names the key, the step and the cause.
func (e *ObjectError) Error() string {
	at := ""
	if e.ResourceVersion != "" {
		at = " at version " + e.ResourceVersion
	}
	return fmt.Sprintf("object %q%s quarantined, %s failed: %v", e.Key, at, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *ObjectError) Unwrap() error { return e.Err }

// naming is the error, or a copy of a store's own, that says which object it is of.
func (e *ObjectError) naming(obj any) *ObjectError {
	if e.object != (identity{}) {
		return e
	}
	named := *e
	named.object, _ = identityOf(obj)
	return &named
}

// Is is true for ErrQuarantined.
func (e *ObjectError) Is(target error) bool { return target == ErrQuarantined }

// UnexpectedTypeError is the cause of an ObjectError of StageType, and the error where
// something typed meets an object of another type.
type UnexpectedTypeError struct {
	// Expected and Actual are Go types, or group/version/kind for unstructured.
	Expected, Actual string
}

// Error names both types.
func (e *UnexpectedTypeError) Error() string {
	return fmt.Sprintf("expected %s, got %s", e.Expected, e.Actual)
}

// ListTypeError is reported when a list, or the initial events of a streaming list, had
// objects and none of them was of the expected type or kind: the source answers with
// something else than it was asked for. The list has failed: nothing of it is applied, what
// was there before stays, no sync follows, and the reflector lists again after a pause. The
// objects are not reported one by one, nor quarantined.
type ListTypeError struct {
	// Objects is how many there were.
	Objects int
	// Key is the first one's, or its place ("item 1 of the list").
	Key string
	// Err says why the first one is of another type, mostly by an *UnexpectedTypeError.
	Err error
}

// Error names the first object and both types.
func (e *ListTypeError) Error() string {
	return fmt.Sprintf("none of %d listed objects is of the expected type: %q: %v", e.Objects, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *ListTypeError) Unwrap() error { return e.Err }

// RegressionError is reported when a source went back in time, be it that it sent something
// older or that a check of its version says so. What it sent was
// not applied; the reflector lists at "" and takes that list whatever its
// version. Where the source has said before that it does not come up to the
// version that is held, or has answered a list at it with "expired", a list at "" that
// is older is reported and applied.
// Seen once, a server was restored or a stale replica answered; seen
// again and again, the source's versions are not in order.
type RegressionError struct {
	// What went back: "list", "bookmark" or "event".
	What string
	// Key is the object's, for an event.
	Key string
	// Have is the version that is held, Got the lower one that came.
	Have, Got string
}

// Error names what went back, and from where to where.
func (e *RegressionError) Error() string {
	of := ""
	if e.Key != "" {
		of = fmt.Sprintf(" of %q", e.Key)
	}
	return fmt.Sprintf("resource version went backwards: %s%s at %s, have %s", e.What, of, e.Got, e.Have)
}

// StoreError is reported when a store that is not of this package refused an
// object or a list. The reflector lists anew, after a pause.
type StoreError struct {
	// Op is the call: Add, Update, Delete, Replace, Bookmark, Resync, GetByKey.
	Op string
	// Name is the object's namespace and name, if the call was about one.
	Name string
	Err  error
}

// Error names the call, the object and the cause.
func (e *StoreError) Error() string {
	of := ""
	if e.Name != "" {
		of = fmt.Sprintf(" of %q", e.Name)
	}
	return fmt.Sprintf("store refused %s%s: %v", e.Op, of, e.Err)
}

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// ProcessError is reported when the consumer's Process or ProcessBatch failed.
// The changes are not handed out again; the next ones are.
type ProcessError struct {
	// Keys are those of the changes, the first ten if there were more.
	Keys []string
	// Changes is how many there were.
	Changes int
	Err     error
}

// Error names the keys and the cause.
func (e *ProcessError) Error() string {
	more := ""
	if e.Changes > len(e.Keys) {
		more = fmt.Sprintf(" and others, %d changes in all", e.Changes)
	}
	return fmt.Sprintf("process failed for %q%s: %v", e.Keys, more, e.Err)
}

// Unwrap returns what Process returned.
func (e *ProcessError) Unwrap() error { return e.Err }

// VeryShortWatchError is reported when a watch closed within a second without
// having sent an event, as client-go does. The reflector pauses and watches
// again.
type VeryShortWatchError struct {
	// Name is the reflector's.
	Name string
}

// Error names the reflector.
func (e *VeryShortWatchError) Error() string {
	return fmt.Sprintf("very short watch: %s: closed within a second and without an event", e.Name)
}

// SlowSourceError is reported, once a call, when a call into the source still
// runs 30 s after its context ended. Run waits for it all the same: the source
// must honour its context.
type SlowSourceError struct {
	// Op is "List", "Watch" or "Stop".
	Op string
	// Waited is how long the call has outlived its context so far.
	Waited time.Duration
}

// Error names the call.
func (e *SlowSourceError) Error() string {
	return fmt.Sprintf("source's %s still runs %s after its context ended", e.Op, e.Waited)
}

// PanicError carries a panic from a goroutine of the package to the caller of
// Run, where it panics again, with the stack of the place that panicked. For a
// user's function whose panic is caught (key, index and transform functions) it
// is the cause in an ObjectError instead.
type PanicError struct {
	Value any
	Stack []byte
}

// panicError makes a PanicError of a recovered value. Call it in the deferred function that recovers.
func panicError(value any) any {
	if _, ok := value.(*PanicError); ok {
		return value
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// Error prints the value and the stack.
func (e *PanicError) Error() string {
	if len(e.Stack) == 0 {
		return fmt.Sprintf("panic: %v", e.Value)
	}
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the panic's value where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
