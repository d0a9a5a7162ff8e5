// The errors of this package: sentinels that callers compare, error types that carry a key, and the
// causes inside them. What failed, on which object, and what happens next? The kind of a failure is
// in causes.go.

package cache

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchmirror/cache/internal/table"
)

// Errors that callers compare with errors.Is.
var (
	// ErrFIFOClosed is returned by Pop and PopBatch once the queue is closed and empty.
	ErrFIFOClosed = errors.New("queue is closed")
	// ErrZeroLengthDeltasObject is the cause in the KeyError for an empty Deltas.
	ErrZeroLengthDeltasObject = errors.New("an empty Deltas has no key")
	// ErrAlreadyRan is reported by a second run of a controller, informer or set, or a concurrent
	// one of a reflector.
	ErrAlreadyRan = errors.New("already running or already run")
	// ErrInformerStopped is the cause when an informer is used, or waited for, after its run. An
	// informer runs once.
	ErrInformerStopped = errors.New("informer has stopped")
	// ErrForeignRegistration is the cause when an informer is passed the handle of another
	// informer.
	ErrForeignRegistration = errors.New("registration belongs to another informer")
	// ErrHandlerRunning is returned by ShutDownEventHandler when a call of the handler has not
	// returned after 30 s.
	ErrHandlerRunning = errors.New(
		"handler was removed, but a call of it is still running: " +
			"it hangs, or waits for its own removal")
	// ErrHandlerRemoved is the Err of a handler's checker when it was removed before it had handled
	// the first list.
	ErrHandlerRemoved = errors.New("handler was removed before it had handled the first list")
	// ErrQuarantined is wrapped by every *ObjectError: the source has the object, but no state
	// could be applied.
	ErrQuarantined = errors.New("object is quarantined")
)

// Causes that programs do not need to distinguish.
var (
	errNilObject = errors.New("object is nil")
	errEmptyKey  = errors.New("key is empty")
	// errOtherNamespace: a view of a namespace received an object of another. The source ignores
	// the requested namespace, or the key function does not put the namespace first.
	errOtherNamespace = errors.New("object of another namespace")
	// errUndecoded replaces a DecodeError that is nil.
	errUndecoded = errors.New("the source could not decode it, and does not say why")

	// errReplacementOver is returned after Commit and Abort.
	errReplacementOver = errors.New("replacement is over: it was committed or aborted")

	errNoListFunc  = errors.New("ListWatch has neither ListFunc nor ListWithContextFunc")
	errNoWatchFunc = errors.New("ListWatch has neither WatchFunc nor WatchFuncWithContext")
	errNilList     = errors.New("source returned no list and no error")
	errNilWatch    = errors.New("source returned no watch and no error")
	// errTable: decoded as an unstructured list, a Table would be an empty list. The Accept header
	// has its media type.
	errTable = caused{
		error: errors.New("source returned a Table instead of objects"),
		kind:  CauseInvalidResponse,
	}
	// errNotList: decoded as a list, a discovery document or a Status would be an empty one.
	errNotList = caused{
		error: errors.New("source returned a document that is not a list"),
		kind:  CauseInvalidResponse,
	}
	// errNoListVersion: earlier lists of the source had a version. A proxy or a damaged response
	// may lack it.
	errNoListVersion = caused{
		error: errors.New("list has no resource version, although earlier lists had one"),
		kind:  CauseInvalidResponse,
	}
	// errNotStatus: the watch has ended, and its events do not tell why.
	errNotStatus = errors.New("the source sent an error event that cannot be understood")
	// errWatchOverdue: the watch was still open 30 s after its timeout.
	errWatchOverdue = caused{
		error: errors.New("watch outlived its timeout: the connection seems half open"),
		kind:  CauseOverdueWatch,
	}
	// errNoInitialEventsEnd: a streaming list was silent for 10 s, or closed, before its last
	// bookmark.
	errNoInitialEventsEnd = caused{
		error: errors.New("stream ended without the initial-events-end bookmark"),
		kind:  causeNoBookmark,
	}
	// errNotStreamed marks a rejection by a source without streaming lists, such as an older
	// server.
	errNotStreamed = errors.New("the source does not stream its first state")
	// errCalledLate ends the list of a source that breaks the contract of ItemLister. Items would
	// be lost otherwise.
	errCalledLate = errors.New("source passed an item after ListItems had returned")
	// errSourceExited: a call of the source ended its goroutine by runtime.Goexit, as a failing
	// assertion does.
	errSourceExited = errors.New("source ended its goroutine and returned nothing")

	// errDropped is a consumer's result once its context has ended: the changes were not processed.
	errDropped = errors.New("dropped: the context has ended")
	// errHandlerPanicked: a handler or Process panicked, and the process survived.
	errHandlerPanicked = errors.New("panicked")
	// errHandlerExited: a handler ended its goroutine by runtime.Goexit, as a failing assertion of
	// a test does.
	errHandlerExited = caused{
		error: errors.New("handler ended its goroutine and is not called any more"),
		kind:  causePanic,
	}
	// errHandlerRemoved is ErrHandlerRemoved for a handler that may have handled the first list.
	errHandlerRemoved   = retitled{err: ErrHandlerRemoved, text: "handler was removed"}
	errNilHandler       = errors.New("handler is nil: pass one, or leave the call out")
	errInformerStarted  = errors.New("informer has started: it is too late to set it")
	errNothingToWaitFor = errors.New("nothing to wait for")
)

// KeyError is returned for an object whose key function failed. The message does not print the
// object. In a status, Obj is the object's ObjectName.
type KeyError struct {
	Obj any
	Err error
}

func (k KeyError) Error() string {
	return fmt.Sprintf("no key for %s: %v", describe(k.Obj), k.Err)
}

func (k KeyError) Unwrap() error { return k.Err }

// withoutObject replaces the object of a KeyError by its name, so that a status can keep the error.
func withoutObject(err error) error {
	keyError, ok := errors.AsType[KeyError](err)
	if !ok {
		return err
	}
	if _, isName := keyError.Obj.(ObjectName); isName {
		return err
	}
	name, noName := ObjectToName(keyError.Obj)
	if noName != nil {
		return KeyError{Err: keyError.Err}
	}
	return KeyError{Obj: name, Err: keyError.Err}
}

// ObjectError reports one object that could not be applied. It is quarantined: its previous state
// stays, and it is tried again when it next arrives. If a store of your own returns one (wrapped or
// not), the reflector quarantines the object; any other error makes it list again.
type ObjectError struct {
	// Key is the object's key, or else its namespace and name, or its place ("item 3 of the list").
	Key string
	// ResourceVersion is the version of the state that was not applied, if known.
	ResourceVersion string
	// Stage is the step that failed: decode, type, metadata, key, transform, index, or process.
	Stage string
	// Err is the cause. It does not hold the object.
	Err error
	// repeated means that this version's failure has been reported.
	repeated bool
	// wrongType means that the type is not the list's.
	wrongType bool
	// isNamelessDeletion means that nobody can name the deleted object: see withDeletionKey.
	isNamelessDeletion bool
	// object is the object's name and kind, if known. Key may come from a store's key function.
	object identity
	// storeKey is the key that readers of the store use, empty if that is Key.
	storeKey table.Key
}

// The stages of an ObjectError.
const (
	stageDecode    = "decode"
	stageType      = "type"
	stageMetadata  = "metadata"
	stageKey       = "key"
	stageTransform = "transform"
	stageIndex     = "index"
	stageProcess   = "process"
)

func (e *ObjectError) Error() string {
	return fmt.Sprintf("object %q%s quarantined, %s failed: %v",
		e.Key, atVersion(e.ResourceVersion), e.Stage, e.Err)
}

func (e *ObjectError) Unwrap() error { return e.Err }

// Is is true for ErrQuarantined.
func (e *ObjectError) Is(target error) bool { return target == ErrQuarantined }

// withKey returns an error that describes the event if the object has no key.
func withKey(bad *ObjectError) *ObjectError {
	if bad.Key != "" {
		return bad
	}
	at := *bad
	at.Key = "watch event" + atVersion(bad.ResourceVersion)
	return &at
}

// withDeletionKey is withKey for a deletion. All deletions that nobody can name share one entry in
// the quarantine, so a damaged source cannot fill the memory with them.
func withDeletionKey(bad *ObjectError) *ObjectError {
	if bad.Key != "" {
		return bad
	}
	at := withKey(bad)
	at.isNamelessDeletion = true
	return at
}

// rejection returns the ObjectError of an object without a key.
func rejection(obj any, err error) *ObjectError {
	if errors.Is(err, errNilObject) && isNilPointer(obj) {
		return &ObjectError{Stage: stageMetadata, Err: err}
	}
	return &ObjectError{
		Key:             nameOf(obj),
		ResourceVersion: receivedOf(obj).ResourceVersion,
		Stage:           stageKey,
		Err:             err,
		object:          identityOf(obj),
	}
}

// refusedDeletion is the error for a deletion that was neither decoded nor applied, because the
// object has no key. It is quarantined by name until the next state of that object.
func refusedDeletion(bad, refused *ObjectError) *ObjectError {
	const format = "its deletion could not be decoded (%w), and was not applied: %w"
	return &ObjectError{
		Key:             bad.Key,
		ResourceVersion: bad.ResourceVersion,
		Stage:           stageDecode,
		Err:             fmt.Errorf(format, bad.Err, refused.Err),
	}
}

// splitObjectErrors splits an error into those of single objects and the rest, nil if there is
// none.
func splitObjectErrors(err error) (objects []*ObjectError, other error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return splitJoined(joined.Unwrap())
	}
	if object, ok := errors.AsType[*ObjectError](err); ok {
		return []*ObjectError{object}, nil
	}
	if key, ok := errors.AsType[KeyError](err); ok {
		return []*ObjectError{rejection(key.Obj, key.Err)}, nil
	}
	return nil, err
}

func splitJoined(parts []error) (objects []*ObjectError, other error) {
	var others []error
	for _, part := range parts {
		more, rest := splitObjectErrors(part)
		objects = append(objects, more...)
		others = append(others, rest)
	}
	return objects, errors.Join(others...)
}

// UnexpectedTypeError is the cause of an ObjectError of the stage type, and the error of typed
// functions for an object of another type.
type UnexpectedTypeError struct {
	// Expected and Actual are Go types, or group/version/kind for unstructured.
	Expected, Actual string
}

func (e *UnexpectedTypeError) Error() string {
	actual := strings.Trim(strconv.Quote(e.Actual), `"`) // it may be a text of the source
	return fmt.Sprintf("expected %s, got %s", e.Expected, actual)
}

// ListTypeError is reported when no object of a list was of the expected type. Nothing is applied,
// and the reflector lists again after a pause.
type ListTypeError struct {
	Objects int
	// Key is the key of the first object, or its place ("item 1 of the list"); Err is its error.
	Key string
	Err error
}

func (e *ListTypeError) Error() string {
	return fmt.Sprintf("none of %d listed objects is of the expected type: %q: %v",
		e.Objects, e.Key, e.Err)
}

func (e *ListTypeError) Unwrap() error { return e.Err }

// VersionRegressionError is reported when a source went back in time: a server was restored, or a
// stale replica answered. It was not applied: the reflector lists again at "" and accepts that list
// whatever its version.
type VersionRegressionError struct {
	// Kind is what regressed: "list", "bookmark" or "event".
	Kind string
	// Key is the object's, for an event.
	Key string
	// Current is the version that the store has, Received the lower one.
	Current, Received string
}

func (e *VersionRegressionError) Error() string {
	return fmt.Sprintf("resource version went backwards: %s%s at %s, have %s",
		e.Kind, ofName(e.Key), e.Received, e.Current)
}

// StoreError is reported when a foreign store refused a call.
type StoreError struct {
	// Op is the method: Add, Update, Delete, Replace, Bookmark, Resync, GetByKey.
	Op string
	// Name is the object's namespace and name, if the call was about one.
	Name string
	Err  error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("store refused %s%s: %v", e.Op, ofName(e.Name), e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

func atVersion(version string) string { return optional(" at version %s", version) }

func ofName(name string) string { return optional(" of %q", name) }

// optional formats a part of a message, and omits it if text is empty.
func optional(format, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(format, text)
}

// ProcessError is reported when Process failed. The changes are not repeated.
type ProcessError struct {
	// Keys are the first ten keys of the changes.
	Keys    []string
	Changes int
	Err     error
}

// add adds a change of a key.
func (e *ProcessError) add(key string) {
	e.Changes++
	if len(e.Keys) < 10 && !slices.Contains(e.Keys, key) {
		e.Keys = append(e.Keys, key)
	}
}

func (e *ProcessError) Error() string {
	more := ""
	if e.Changes > len(e.Keys) {
		more = fmt.Sprintf(" and others, %d changes in all", e.Changes)
	}
	return fmt.Sprintf("process failed for %q%s: %v", e.Keys, more, e.Err)
}

func (e *ProcessError) Unwrap() error { return e.Err }

// VeryShortWatchError is reported for a watch that closed within a second without an event.
type VeryShortWatchError struct{ Name string }

func (e *VeryShortWatchError) Error() string {
	return fmt.Sprintf("very short watch: %s: closed within a second and without an event", e.Name)
}

// SlowSourceError is reported for a call that outlives its context by 30 s.
type SlowSourceError struct {
	// Op is "List", "Watch" or "Stop", or "Fresh" or "Verify" for a request of those.
	Op     string
	Waited time.Duration
}

func (e *SlowSourceError) Error() string {
	return fmt.Sprintf("source's %s still runs %s after its context ended", e.Op, e.Waited)
}

// MutatedObjectError is reported when a reader or handler changed an object in the store. The store
// keeps it until the source sends its next state.
type MutatedObjectError struct {
	Key             string
	ResourceVersion string
	// Changes are the first five of Total, sorted: a path as in JSON (metadata.labels.app) and
	// "changed", "added" or "removed", without values. There are none if the object changed during
	// the comparison.
	Changes []string
	Total   int
	// Err, if set, is why this type is not watched: nothing was changed.
	Err error
}

func (e *MutatedObjectError) Unwrap() error { return e.Err }

func (e *MutatedObjectError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("object %q is not watched for changes: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("object %q%s was changed in the store, where it is shared: %s",
		e.Key, atVersion(e.ResourceVersion), e.changesText())
}

func (e *MutatedObjectError) changesText() string {
	text := strings.Join(e.Changes, ", ")
	if more := e.Total - len(e.Changes); more > 0 {
		text = fmt.Sprintf("%s, and %d more", text, more)
	}
	if text == "" {
		return "it was being changed while it was compared"
	}
	return text
}

// DivergenceError has the keys of the differences that Verify has found.
type DivergenceError struct {
	Name string
	// Missing are only in the source, Extra only in the store. Outdated have another state in the
	// source.
	Missing, Extra, Outdated []string
}

func (e *DivergenceError) Error() string {
	return "the store of " + e.Name + " differed from its source" +
		differences("missing", e.Missing) +
		differences("extra", e.Extra) +
		differences("outdated", e.Outdated)
}

// differences describes the keys of one kind of difference, with the first five of them.
func differences(kind string, keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d %s: %q", len(keys), kind, keys[:min(5, len(keys))])
}

// PanicError carries a panic of a source or handler, with its stack, to the caller of Run. In an
// ObjectError, it is a panic of a user function.
type PanicError struct {
	Value any
	Stack []byte

	// text is the message for a user's function, in one line, without the stack.
	text string
}

// panicError returns a recovered value as a *PanicError. Call it in the deferred function that
// recovers.
func panicError(value any) any {
	if _, ok := value.(*PanicError); ok {
		return value
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

func (e *PanicError) Error() string {
	if e.text != "" {
		return e.text
	}
	return strings.TrimSpace(fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack))
}

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// withoutStack returns an error as the quarantine keeps it for each object: without the stack of a
// panic, which has been reported. It calls the error's methods.
func withoutStack(err error) error {
	panicked, ok := errors.AsType[*PanicError](err)
	if !ok || panicked.Stack == nil {
		return err
	}
	return &PanicError{Value: panicked.Value, text: err.Error()}
}

// retitled is an error with another text.
type retitled struct {
	err  error
	text string
}

func (e retitled) Error() string { return e.text }
func (e retitled) Unwrap() error { return e.err }

// listedErrors are errors in one line.
type listedErrors []error

func (l listedErrors) Error() string {
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (l listedErrors) Unwrap() []error { return l }

// mustHave panics unless ok. Constructors use it for programming errors.
func mustHave(ok bool, format string, args ...any) {
	if !ok {
		panic("cache: " + fmt.Sprintf(format, args...))
	}
}
