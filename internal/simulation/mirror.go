package simulation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache"
)

// mirror is one thing of ours that mirrors the source: a reflector and all that it
// feeds, with a record of it. Unused parts are nil.
type mirror struct {
	world *world
	setup MirrorSetup
	name  string
	// taps are before each of its reflectors: one, or one a namespace.
	taps  []*tap
	calls *calls

	get     func(key string) *Object
	list    func() []any
	byGroup func(group string) ([]string, error)
	groups  func() []string
	applied func() string
	synced  func() bool
	status  func() cache.Status
	run     func(context.Context)
	again   func(context.Context)
	// join adds a handler, leave removes it and waits for its last call.
	join  func(*handler) error
	leave func(*handler) error

	// fresh and verify are those of an informer, and asked counts the calls of them that are under way.
	fresh, verify func(context.Context) error
	asked         atomic.Int64

	handlers []*handler
	cancel   context.CancelFunc
	done     chan struct{}
	observer observer
	version  versions
	// snapshots are of what it shows; see lookAtSnapshot.
	snapshots snapshots

	// regressed counts the reports that the source went back in time.
	regressed atomic.Int64
	// unknown is true once the source has not known its version: another past may have the same ones since. After a stream
	// that was expired that is so as long as the next one has not ended, and so said its version.
	unknown atomic.Bool

	mu       sync.Mutex
	receipts int
	// callerReceipts are those of objects that callers of Verify were sent, below 0.
	callerReceipts int
	faults         int
	reports        []reported
	// everHeld are the keys that it has reported as quarantined.
	everHeld map[string]bool
	// transformed counts the transforms of each receipt.
	transformed map[int]int
	// refused are the serials of states that a function could not take for a time.
	refused map[int]bool
}

// reported is what the error handler received.
type reported struct {
	at   time.Time
	err  error
	text string
}

func newMirror(w *world, index int, setup MirrorSetup) *mirror {
	m := &mirror{
		world: w, setup: setup, name: fmt.Sprintf("%s-%d", setup.Kind, index), done: make(chan struct{}),
		everHeld: map[string]bool{}, transformed: map[int]int{}, refused: map[int]bool{},
	}
	m.calls = &calls{mirror: m, nests: setup.Kind == KindProcess}
	m.observer = observer{mirror: m, what: "store of " + m.name}
	m.make(rand.New(rand.NewPCG(w.script.Seed, uint64(index)+100)))
	for i, h := range setup.Handlers {
		m.add(h, fmt.Sprintf("%s/%d", m.name, i))
	}
	return m
}

// begun says whether its run has been started.
func (m *mirror) begun() bool { return m.cancel != nil }

// begin starts the run.
func (m *mirror) begin() {
	ctx, cancel := context.WithCancel(m.world.ctx)
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.run(ctx)
		m.calls.runReturned()
	}()
}

// stop ends the context of the run.
func (m *mirror) stop() {
	m.calls.cancel()
	m.cancel()
}

// runAgain is a second run. Its end says nothing of the first.
func (m *mirror) runAgain(ctx context.Context) {
	if m.again != nil {
		m.again(ctx)
		return
	}
	m.run(ctx)
}

// count is how often a cause was reported.
func (m *mirror) count(cause error) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.reports {
		if errors.Is(r.err, cause) {
			n++
		}
	}
	return n
}

func (m *mirror) await() { <-m.done }

func (m *mirror) stopped() bool { return m.calls.isCancelled() }

func (m *mirror) note(format string, args ...any) { m.world.note(format, args...) }

func (m *mirror) nextReceipt() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.receipts++
	return m.receipts
}

// nextCallerReceipt is for an object that a caller is sent: no mirror shows that.
func (m *mirror) nextCallerReceipt() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callerReceipts--
	return m.callerReceipts
}

// sent is how many objects it has been sent.
func (m *mirror) sent() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.receipts
}

func (m *mirror) nextFault() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults++
	return m.faults
}

// report is its error handler.
func (m *mirror) report(_ context.Context, _ *cache.Reflector, err error) {
	cause := cache.CauseOf(err)
	switch cause {
	case "regression":
		m.regressed.Add(1)
	case cache.CauseVersionTooLarge:
		m.unknown.Store(true)
	case cache.CauseExpired:
		m.unknown.CompareAndSwap(false, strings.HasPrefix(err.Error(), "streaming "))
	}
	var object *cache.ObjectError
	m.mu.Lock()
	if errors.As(err, &object) {
		m.everHeld[object.Key] = true
	}
	m.reports = append(m.reports, reported{time.Now(), err, err.Error()})
	m.mu.Unlock()
	m.note("%s reports: %v", m.name, short(err.Error()))
	if cause == "" {
		m.world.fail("G12: %s: a report without a cause: %v", m.name, err)
	}
}

// short is the first line of a text: reports of panics have their stack.
func short(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// regressions is how often it has reported that the source went back in time.
func (m *mirror) regressions() int { return int(m.regressed.Load()) }

// hasHeld says whether it has ever reported a key as quarantined.
func (m *mirror) hasHeld(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.everHeld[key]
}

func (m *mirror) refuse(serial int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused[serial] = true
}

func (m *mirror) hasRefused(serial int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused[serial]
}

func (m *mirror) requestCount() int {
	n := 0
	for _, t := range m.taps {
		n += len(t.requests)
	}
	return n
}

func (m *mirror) receivedCount() int {
	n := 0
	for _, h := range m.handlers {
		n += h.received
	}
	return n
}

// add makes a handler, if the mirror takes any.
func (m *mirror) add(setup HandlerSetup, name string) {
	if m.join == nil {
		return
	}
	h := newHandler(m, setup, name)
	h.owed, h.owedAt = m.owed(), m.world.truth.present()
	if m.begun() {
		h.joined, h.late = math.MaxInt, true // until that is known
	}
	err := m.join(h)
	h.mu.Lock()
	if h.late {
		h.joined = m.sent()
	}
	h.mu.Unlock()
	switch {
	case err == nil:
		m.handlers = append(m.handlers, h)
	case !m.stopped():
		m.world.fail("%s takes no handler: %v", m.name, err)
	}
}

// owed are the keys that a handler which joins now receives before it has synced: what
// is shown, or, before the run, what the source has.
func (m *mirror) owed() (owed []string) {
	if !m.begun() {
		for key, s := range m.world.truth.now() {
			if s.shown() {
				owed = append(owed, key)
			}
		}
		return owed
	}
	now := m.world.truth.now()
	for _, obj := range m.list() {
		// The backend may have changed before the handler is called.
		if o := asObject(obj); o != nil && now[keyOf(o)].serial == serialOf(o) {
			owed = append(owed, keyOf(o))
		}
	}
	return owed
}

// transform is that of every mirror that has one.
func (m *mirror) transform(obj any) (any, error) {
	defer m.calls.begin("transform")()
	if d := m.world.transformTakes.Load(); d > 0 {
		time.Sleep(time.Duration(d))
	}
	o, ok := obj.(*Object)
	if !ok {
		m.world.fail("G14: the transform of %s was given a %T", m.name, obj)
		return obj, nil
	}
	m.mu.Lock()
	m.transformed[receiptOf(o)]++
	times := m.transformed[receiptOf(o)]
	m.mu.Unlock()
	if times > 1 {
		m.world.fail("G14: %s transformed %s of receipt %d %d times", m.name, keyOf(o), receiptOf(o), times)
	}
	switch {
	case o.Annotations[badMark] == badTransform:
		return nil, errBad
	case o.Annotations[badMark] == badTransformPanic:
		panic(errBad)
	case m.world.transformsFail.Load():
		m.refuse(serialOf(o))
		return nil, errBad
	case o.Annotations[unwantedMark] != "":
		return nil, nil
	}
	setMark(o, transformedMark, o.Annotations[transformedMark]+"1")
	return o, nil
}

// index is the index function of every mirror that has one.
func (m *mirror) index(obj any) ([]string, error) {
	defer m.calls.begin("index function")()
	if d := m.world.indexingTakes.Load(); d > 0 {
		time.Sleep(time.Duration(d))
	}
	if o := asObject(obj); o != nil && m.world.indexesFail.Load() {
		m.refuse(serialOf(o))
		return nil, errBad
	}
	return byGroup(obj)
}
