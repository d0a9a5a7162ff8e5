// Package sources makes sources from functions and from key-value stores.
//
// A [PollingSource] is made from a function that returns the current objects. It calls the function
// for each list and, while a watch is open, at an interval. It compares each result with the
// previous one, and delivers the differences as events:
//
//	source := sources.NewPollingSource(listMachines, sources.PollingOptions[*Machine]{})
//	machines := cache.NewTypedInformer(source, cache.InformerConfig[*Machine]{})
//
// A change that is reverted between two calls is not noticed. An object that is deleted and created
// again between two calls is updated, unless it has another UID.
//
// A [KeyValueSource] is made from a store of keys whose changes have increasing revisions, with the
// two methods of [KeyValueStore] and the two of [KeyWatch]. Packages sources/etcd and sources/nats
// are such sources. [docs/sources.md] explains when to write a source by hand instead; [Expired]
// and [TooLarge] are errors for such a source.
//
// [docs/sources.md]: https://github.com/watchmirror/cache/blob/main/docs/sources.md
package sources

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"path"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/option"
)

const (
	defaultInterval = 30 * time.Second
	defaultTimeout  = time.Minute
	defaultHistory  = 1000
	// Pause after a failed call. It doubles with each further failure, up to longestPause.
	firstPause, longestPause = time.Second, 30 * time.Second
	// requestWait is how long a request waits for the next call. It bounds the rate of a caller
	// that never pauses.
	requestWait = time.Second
)

// Object is a pointer to a struct with ObjectMeta and a DeepCopyObject method.
type Object interface {
	metav1.Object
	runtime.Object
}

// PollingOptions configures a PollingSource. All fields are optional.
type PollingOptions[T Object] struct {
	// Interval is the pause between two calls of the function while a watch is open. The objects
	// may be older by it than Status.LastCurrent says, which is when the source last knew of
	// nothing newer. Default: 30 seconds.
	Interval time.Duration
	// Timeout bounds a call: its context ends, and the call counts as failed. Default: one minute.
	Timeout time.Duration
	// Equal returns whether two states of one object are equal, so that there is no event. Their
	// resource versions are equal, and so are the UIDs unless the function sets them. It must not
	// change them. Default: equality.Semantic.DeepEqual, with times compared as instants. It cannot
	// compare other types with unexported fields: objects that have them are compared by
	// reflect.DeepEqual.
	Equal func(a, b T) bool
	// History is the number of changes kept for watches that resume or read slowly; those of the
	// last call are always kept. An older version is expired. Default: 1,000.
	History int
}

// PollingSource is a Source, and a ListerWatcher, over a function. All methods may be called
// concurrently.
//
// Each list calls the function; concurrent lists share a call. All open watches share one call each
// interval, and get a bookmark after it if it has sent them no event. After a failure the function
// is called again after 1, 2, 4, 8, 16 and then every 30 seconds, however many callers there are. A
// request that comes earlier waits for that call for a second, and then fails with the last error.
// A failure ends the open watches with an Error event. Requests and watches report a failure alike:
// with the error's Status, or ServiceUnavailable, and the time until the next call as its
// Retry-After.
//
// Resource versions are the source's own: decimal, one for each change. An object without a UID
// gets a random one, so that a relist recognizes it as unchanged. Objects are copied in and out.
type PollingSource struct {
	// madeAt is the program's file and line that made the source.
	madeAt            string
	list              func(ctx context.Context) ([]Object, error)
	equal             func(a, b Object) bool
	interval, timeout time.Duration
	historySize       int
	// semaphore is held by the caller that calls the function. Only that caller writes the fields
	// that mu guards.
	semaphore chan struct{}

	mu sync.Mutex
	// started is the number of the last call that began, finished that of the last one with a
	// result; err is its error.
	started, finished uint64
	err               error
	failures          int
	// nextCall is when the next call is due.
	nextCall time.Time
	version  uint64
	// objects has the current objects in the function's order, byName the same ones by name. The
	// objects and the slice are immutable.
	objects []Object
	byName  map[cache.ObjectName]Object
	// example is an object of the source's type, for bookmarks. Until an object was listed, one of
	// an untyped source has no kind, and one of an interface is a PartialObjectMetadata.
	example Object
	// history has the last changes. The last one led to version; versions increase by one.
	history []change
	// changed is closed when a call has ended.
	changed chan struct{}
}

var (
	_ cache.ListerWatcher = (*PollingSource)(nil)
	_ cache.Source        = (*PollingSource)(nil)
	_ cache.ItemLister    = (*PollingSource)(nil)
)

// change is a change of one object: before is nil if it was added, after if it was deleted.
type change struct {
	version       uint64
	before, after Object
}

// NewPollingSource returns a source for a function that returns the current objects, each namespace
// and name once. The function must return when its context ends, must not call the source, and
// keeps ownership of its objects. NewPollingSource starts no goroutine, and panics if the function
// is nil, an option is negative, or more than one PollingOptions are given.
func NewPollingSource[T Object](
	list func(ctx context.Context) ([]T, error), optional ...PollingOptions[T],
) *PollingSource {
	options := option.AtMostOne("sources: NewPollingSource", optional)
	if list == nil {
		panic("sources: NewPollingSource: the list function is nil")
	}
	if options.Interval < 0 || options.Timeout < 0 || options.History < 0 {
		panic("sources: NewPollingSource: PollingOptions.Interval, Timeout or History is negative")
	}
	equal := areEqual
	if options.Equal != nil {
		equal = func(a, b Object) bool {
			before, ok := a.(T)
			after, same := b.(T)
			return ok && same && options.Equal(before, after)
		}
	}
	return &PollingSource{
		madeAt: callerOf(1),
		list: func(ctx context.Context) ([]Object, error) {
			listed, err := list(ctx)
			objects := make([]Object, len(listed))
			for i, obj := range listed {
				objects[i] = obj
			}
			return objects, err
		},
		equal:       equal,
		interval:    cmp.Or(options.Interval, defaultInterval),
		timeout:     cmp.Or(options.Timeout, defaultTimeout),
		historySize: cmp.Or(options.History, defaultHistory),
		semaphore:   make(chan struct{}, 1),
		version:     1, // an empty list must have a version too
		example:     exampleOf[T](),
		changed:     make(chan struct{}),
	}
}

// semantic is equality.Semantic with times of plain structs.
var semantic = withTimes(equality.Semantic)

func withTimes(semantic conversion.Equalities) conversion.Equalities {
	extended := semantic.Copy()
	err := extended.AddFunc(time.Time.Equal)
	if err != nil {
		panic(err) // the function has the wrong form
	}
	return extended
}

// areEqual is the default of PollingOptions.Equal.
func areEqual(a, b Object) (equal bool) {
	defer func() {
		// DeepEqual panics where it meets an unexported field, which only some objects may have.
		isIncomparable := recover() != nil
		if isIncomparable {
			equal = reflect.DeepEqual(a, b)
		}
	}()
	return semantic.DeepEqual(a, b)
}

// callerOf returns folder/file:line of the caller of a function that is some calls above this one.
func callerOf(above int) string {
	_, file, line, _ := goruntime.Caller(above + 1)
	folder, name := path.Split(file)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), name), line)
}

// TypeDescription names the objects of an untyped cache by the line that made the source: "polled
// by shop/orders.go:12".
func (p *PollingSource) TypeDescription() string { return "polled by " + p.madeAt }

// SourceStatus returns details for a reflector's Status: the line that made the source, and the
// interval of its calls.
func (p *PollingSource) SourceStatus() map[string]string {
	return map[string]string{"polled by": p.madeAt, "interval": p.interval.String()}
}

// exampleOf returns a new T, or a PartialObjectMetadata if T is an interface.
func exampleOf[T Object]() Object {
	objectType := reflect.TypeFor[T]()
	if objectType.Kind() != reflect.Pointer {
		return &metav1.PartialObjectMetadata{}
	}
	return reflect.New(objectType.Elem()).Interface().(Object)
}

// Poll calls the function, for a program that knows of a change: at once, or at the end of the
// pause after a failure. It blocks until the call has returned. If it returns nil, lists and open
// watches have all changes made before it was called.
func (p *PollingSource) Poll(ctx context.Context) error { return p.pollAnew(ctx, longestPause) }

// pollAnew waits for the result of a call that begins after pollAnew.
func (p *PollingSource) pollAnew(ctx context.Context, maxWait time.Duration) error {
	p.mu.Lock()
	started := p.started
	p.mu.Unlock()
	return p.poll(ctx, started, maxWait)
}

// List is ListWithContext without a context.
func (p *PollingSource) List(options metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), options)
}

// ListWithContext calls the function and returns a *metav1.List of copies. It supports resource
// version and match, label selectors, and field selectors of metadata.name and metadata.namespace.
// It ignores a limit.
func (p *PollingSource) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	return collect(
		func(take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error) {
			return p.ListItems(ctx, options, take)
		},
	)
}

// ListItems implements cache.ItemLister.
func (p *PollingSource) ListItems(
	ctx context.Context,
	options metav1.ListOptions,
	take func(list metav1.ListMeta, item runtime.Object) error,
) (metav1.ListMeta, error) {
	selection, requested, err := parseOptions(options)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	if err := p.pollAnew(ctx, requestWait); err != nil {
		return metav1.ListMeta{}, err
	}
	p.mu.Lock()
	version := p.version
	objects := p.objects
	p.mu.Unlock()
	switch {
	case options.Continue != "":
		return metav1.ListMeta{}, apierrors.NewBadRequest(
			"continue: this source sends no such tokens")
	case requested > version:
		return metav1.ListMeta{}, TooLarge(requested, version)
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && requested < version:
		return metav1.ListMeta{}, Expired(requested, version)
	}
	listMeta := metav1.ListMeta{ResourceVersion: formatVersion(version)}
	for _, obj := range objects {
		if selection.matches(obj) {
			if err := take(listMeta, obj.DeepCopyObject()); err != nil {
				return listMeta, err
			}
		}
	}
	return listMeta, nil
}

// poll calls the function, unless a call with a number above newerThan has ended by then, whose
// result it shares. In the pause after a failure it waits for the next call, but not longer than
// maxWait. Then it returns that failure.
func (p *PollingSource) poll(ctx context.Context, newerThan uint64, maxWait time.Duration) error {
	giveUp := time.Now().Add(maxWait)
	for ctx.Err() == nil {
		ended, err := p.pollUnlessPaused(ctx, newerThan)
		if ended {
			return err
		}
		p.mu.Lock()
		nextCall := p.nextCall
		p.mu.Unlock()
		if nextCall.After(giveUp) {
			if !sleep(ctx, time.Until(giveUp)) {
				break
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.failureLocked()
		}
		sleep(ctx, time.Until(nextCall))
	}
	return context.Cause(ctx)
}

// pollUnlessPaused is poll, but returns false in the pause after a failure.
func (p *PollingSource) pollUnlessPaused(
	ctx context.Context, newerThan uint64,
) (ended bool, err error) {
	select {
	case p.semaphore <- struct{}{}:
		defer func() { <-p.semaphore }()
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
	if p.finished > newerThan {
		p.mu.Lock()
		defer p.mu.Unlock()
		return true, p.failureLocked()
	}
	if p.err != nil && time.Now().Before(p.nextCall) {
		return false, nil
	}
	p.mu.Lock()
	p.started++
	call := p.started
	p.mu.Unlock()
	result, err := p.call(ctx)
	if err != nil && ctx.Err() != nil {
		return true, context.Cause(ctx) // not a failure of the function: the next caller calls it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = call
	p.err = err
	close(p.changed)
	p.changed = make(chan struct{})
	if err != nil {
		p.nextCall = time.Now().Add(min(firstPause<<min(p.failures, 5), longestPause))
		p.failures++
		return true, p.failureLocked()
	}
	p.failures = 0
	p.nextCall = time.Now().Add(p.interval)
	p.applyLocked(result)
	return true, nil
}

// applyLocked makes the result of a call the current state.
func (p *PollingSource) applyLocked(result polled) {
	p.byName = result.byName
	p.objects = result.objects
	if len(result.objects) > 0 {
		p.example = result.objects[0]
	}
	if len(result.changes) == 0 {
		return
	}
	p.version += uint64(len(result.changes))
	p.history = append(p.history, result.changes...)
	excess := len(p.history) - max(p.historySize, len(result.changes))
	if excess > 0 {
		p.history = slices.Delete(p.history, 0, excess)
	}
}

// failureLocked returns the error of the last call as requests and watches report it, nil if it has
// succeeded.
func (p *PollingSource) failureLocked() error {
	if p.err == nil {
		return nil
	}
	return newCallError(p.err, time.Until(p.nextCall))
}

// causePollFailed tells a reflector that an Error event has the error of a call. Package cache does
// not export it.
const causePollFailed metav1.CauseType = "PollFailed"

// callError is a failed call. Its status is the same in a response and in a watch's Error event.
type callError struct {
	err    error
	status metav1.Status
}

func newCallError(err error, untilNext time.Duration) *callError {
	status := statusOf(err)
	details := metav1.StatusDetails{}
	if status.Details != nil {
		details = *status.Details
	}
	seconds := int32(math.Ceil(max(untilNext, 0).Seconds()))
	details.RetryAfterSeconds = max(details.RetryAfterSeconds, seconds)
	details.Causes = append(
		slices.Clone(details.Causes), metav1.StatusCause{Type: causePollFailed})
	status.Details = &details
	return &callError{err, status}
}

// Error implements error.
func (e *callError) Error() string { return e.err.Error() }

// Is finds the function's error, and errors in it, for errors.Is.
func (e *callError) Is(target error) bool { return errors.Is(e.err, target) }

// As finds them for errors.As by their type, but not by an interface: the status alone determines
// the cause, as in a watch's Error event.
func (e *callError) As(target any) bool {
	wanted := reflect.TypeOf(target).Elem()
	return wanted.Kind() != reflect.Interface && errors.As(e.err, target)
}

// Status implements apierrors.APIStatus.
func (e *callError) Status() metav1.Status { return e.status }

// polled is the result of a call of the function.
type polled struct {
	byName  map[cache.ObjectName]Object
	objects []Object
	// changes are those since the current state: deletions by name, then other changes in the
	// function's order.
	changes []change
}

// call calls the function and compares its result with the current objects. The caller holds
// semaphore.
func (p *PollingSource) call(ctx context.Context) (polled, error) {
	callCtx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	listed, err := p.list(callCtx)
	if err != nil {
		if ctx.Err() == nil && callCtx.Err() != nil {
			err = fmt.Errorf("not answered within %s: %w", p.timeout, err)
		}
		return polled{}, fmt.Errorf("poll: %w", err)
	}
	result := polled{
		byName:  make(map[cache.ObjectName]Object, len(listed)),
		objects: make([]Object, 0, len(listed)),
	}
	for i, obj := range listed {
		before, after, err := p.identify(obj, result.byName)
		if err != nil {
			return polled{}, fmt.Errorf("poll: object %d of %d: %w", i+1, len(listed), err)
		}
		p.add(&result, before, after)
	}
	result.changes = append(p.deletions(result.byName), result.changes...)
	p.setVersions(result.changes)
	return result, nil
}

// add adds an object to a result. An unchanged object is the current one.
func (p *PollingSource) add(result *polled, before, after Object) {
	switch {
	case before == nil:
		result.changes = append(result.changes, change{after: after})
	case before.GetUID() != after.GetUID():
		result.changes = append(result.changes, change{before: before}, change{after: after})
	case p.equal(before, after):
		after = before
	default:
		result.changes = append(result.changes, change{before: before, after: after})
	}
	result.byName[cache.MetaObjectToName(after)] = after
	result.objects = append(result.objects, after)
}

// deletions returns the deletions of the current objects that are not listed, sorted by name.
func (p *PollingSource) deletions(listed map[cache.ObjectName]Object) []change {
	var deleted []change
	for name, obj := range p.byName {
		if listed[name] == nil {
			deleted = append(deleted, change{before: obj})
		}
	}
	slices.SortFunc(deleted, func(a, b change) int {
		return cmp.Or(strings.Compare(a.before.GetNamespace(), b.before.GetNamespace()),
			strings.Compare(a.before.GetName(), b.before.GetName()))
	})
	return deleted
}

// setVersions gives each change the next version.
func (p *PollingSource) setVersions(changes []change) {
	for i := range changes {
		changes[i].version = p.version + 1 + uint64(i)
		if after := changes[i].after; after != nil {
			after.SetResourceVersion(formatVersion(changes[i].version))
		}
	}
}

// identify returns a copy of an object with the version and UID of its current state, and that
// state, nil if there is none. listed has the objects before it in the result.
func (p *PollingSource) identify(
	obj Object, listed map[cache.ObjectName]Object,
) (before, after Object, err error) {
	if isNil(obj) {
		return nil, nil, errors.New("it is nil")
	}
	name := cache.MetaObjectToName(obj)
	switch {
	case name.Name == "":
		return nil, nil, errors.New("it has no name")
	case listed[name] != nil:
		return nil, nil, fmt.Errorf("%q is listed twice", name)
	}
	before = p.byName[name]
	after = obj.DeepCopyObject().(Object)
	switch {
	case before == nil && after.GetUID() == "":
		after.SetUID(types.UID(rand.Text()))
	case before != nil:
		after.SetResourceVersion(before.GetResourceVersion())
		after.SetUID(cmp.Or(after.GetUID(), before.GetUID()))
	}
	return before, after, nil
}

// sleep returns false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
