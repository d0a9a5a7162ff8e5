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
	"github.com/watchmirror/cache/internal/simulation/script"
)

// mirror is one mirror of the source: a reflector and everything that it feeds, with a record of
// its behavior. Unused parts are nil.
type mirror struct {
	world *world
	setup script.MirrorSetup
	name  string
	// taps are those of its reflectors: one, or one for each namespace.
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

	// fresh and verify are methods of an informer; asked counts their running calls.
	fresh, verify func(context.Context) error
	asked         atomic.Int64

	// inSet says whether it belongs to the world's set. replace makes another writer replace the
	// content of its store; nil unless it has several.
	inSet   bool
	replace func() error

	handlers []*handler
	cancel   context.CancelFunc
	done     chan struct{}
	observer observer
	version  versions
	// snapshots are of its content; see checkSnapshot.
	snapshots snapshots

	// regressed counts its reports of version regressions.
	regressed atomic.Int64
	// unknown is true once its version may belong to a history that the source has lost. After an expired stream that is so
	// until the next stream has ended.
	unknown atomic.Bool

	mu       sync.Mutex
	receipts int
	// callerReceipts counts down: receipts of objects sent to callers of Verify are negative.
	callerReceipts int
	faults         int
	reports        []reported
	// everQuarantined are the keys that it has reported as quarantined.
	everQuarantined map[string]bool
	// transformed counts the transforms of each receipt.
	transformed map[int]int
	// refused are the serials of states for which a function failed temporarily.
	refused map[int]bool
}

// reported is an error that the error handler received.
type reported struct {
	at   time.Time
	err  error
	text string
}

func newMirror(w *world, index int, setup script.MirrorSetup) *mirror {
	m := &mirror{
		world: w, setup: setup, name: fmt.Sprintf("%s-%d", setup.Kind, index), done: make(chan struct{}),
		everQuarantined: map[string]bool{}, transformed: map[int]int{}, refused: map[int]bool{},
	}
	m.calls = &calls{mirror: m, nests: setup.Kind == script.KindProcess}
	m.observer = observer{mirror: m, what: "store of " + m.name}
	m.make(rand.New(rand.NewPCG(w.script.Seed, uint64(index)+100)))
	for i, h := range setup.Handlers {
		m.add(h, fmt.Sprintf("%s/%d", m.name, i))
	}
	return m
}

// begun says whether its run has started.
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

// runAgain is a second, concurrent Run.
func (m *mirror) runAgain(ctx context.Context) {
	if m.again != nil {
		m.again(ctx)
		return
	}
	m.run(ctx)
}

// count returns the number of reports of a cause.
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

// nextCallerReceipt returns a receipt for an object sent to a caller of Verify, which no mirror shows.
func (m *mirror) nextCallerReceipt() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.callerReceipts--
	return m.callerReceipts
}

// sent returns the number of objects that it has been sent.
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
		if !m.world.regressed() && !m.world.oldBookmarks.Load() && m.setup.Kind != script.KindOverlap {
			m.world.fail("B31: %s reports a regression of a source that never went back: %v", m.name, err)
		}
	case cache.CauseVersionTooLarge:
		m.unknown.Store(true)
	case cache.CauseExpired:
		m.unknown.CompareAndSwap(false, strings.HasPrefix(err.Error(), "streaming "))
	}
	var object *cache.ObjectError
	m.mu.Lock()
	if errors.As(err, &object) {
		m.everQuarantined[object.Key] = true
	}
	m.reports = append(m.reports, reported{time.Now(), err, err.Error()})
	m.mu.Unlock()
	m.note("%s reports: %v", m.name, firstLine(err.Error()))
	if cause == "" {
		m.world.fail("G12: %s: a report without a cause: %v", m.name, err)
	}
}

// firstLine returns the first line of a text: reports of panics include the stack.
func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// regressions returns the number of reported version regressions.
func (m *mirror) regressions() int { return int(m.regressed.Load()) }

// wasQuarantined says whether it has ever reported a key as quarantined.
func (m *mirror) wasQuarantined(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.everQuarantined[key]
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

// add adds a handler, if the mirror has handlers.
func (m *mirror) add(setup script.HandlerSetup, name string) {
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

// owed returns the keys that a handler that joins now receives before it has synced: those of the
// store or, before the run, of the source.
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
	case o.Annotations[badMark] == script.BadTransform:
		return nil, errBad
	case o.Annotations[badMark] == script.BadTransformPanic:
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
