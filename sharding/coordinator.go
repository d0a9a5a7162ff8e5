package sharding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// CoordinatorOptions configure a Coordinator. Leases, ID and Apply are required.
type CoordinatorOptions struct {
	// Leases are the group's store. All replicas of a program use the same, and no others.
	Leases Leases
	// ID names the replica in leases and errors: lower-case letters, digits and dashes, such as the name of a pod.
	ID string
	// Shards is the number of ranges that are assigned, the same for all replicas. Default: 16. It should be several times the
	// number of replicas, so that their shares are of similar size.
	Shards int
	// LeaseDuration is how long the ranges of a replica that has died stay without an owner. Default: 15 s. A replica renews its lease
	// six times in it, and gives its ranges up if it could not for two thirds of it.
	LeaseDuration time.Duration
	// Apply makes ranges those of this replica, and returns nil once it has stopped working on everything else: only then is a range
	// released. It is called by one goroutine at a time, and again if it fails or if its context ends before it returns nil. Its context
	// ends when other ranges are to be applied, and when this replica's lease may expire.
	//
	//	Apply: func(ctx context.Context, ranges sharding.Ranges) error {
	//		if err := share.Apply(ctx, ranges); err != nil { // share is the Selector of the informer
	//			return err
	//		}
	//		return informer.WaitForHandler(ctx, handle, informer.ResourceVersion())
	//	}
	Apply func(ctx context.Context, ranges Ranges) error
	// OnError is called with failures of the store and of Apply, which are all retried, by one goroutine at a time. Default: they are logged.
	OnError func(err error)
}

// Coordinator assigns ranges to the replicas that run, about the same number to each. NewCoordinator makes one.
//
// A range has one owner at a time, and passes on only after its owner has released it, or once the owner's lease has expired. An owner
// counts from before each renewal and gives up at two thirds of the lease; others count from when they first saw it. So the clocks of
// replicas may show different times, and need to run at the same speed but for a tenth.
type Coordinator struct {
	options CoordinatorOptions

	mu sync.Mutex
	// granted are the ranges that are applied or being applied, until granted ends.
	granted Ranges
	until   time.Time
}

// ErrInUse is wrapped by an error of OnError: Apply has not returned by the time at which others may own the ranges.
var ErrInUse = errors.New("ranges are in use after the lease has expired")

// NewCoordinator makes a coordinator and starts nothing. It panics for options that are missing or negative.
func NewCoordinator(options CoordinatorOptions) *Coordinator {
	options.Shards = cmp.Or(options.Shards, 16)
	options.LeaseDuration = cmp.Or(options.LeaseDuration, 15*time.Second)
	switch {
	case options.Leases == nil || options.Apply == nil:
		panic("sharding: CoordinatorOptions: Leases and Apply are required")
	case options.ID == "" || strings.Trim(options.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		panic("sharding: CoordinatorOptions: ID must have lower-case letters, digits and dashes alone")
	case options.Shards < 0 || options.LeaseDuration < 0:
		panic("sharding: CoordinatorOptions: Shards or LeaseDuration is negative")
	}
	if options.OnError == nil {
		options.OnError = func(err error) {
			klog.Background().Error(err, "Coordinating shards failed", "replica", options.ID)
		}
	}
	return &Coordinator{options: options}
}

// Owns reports whether an object belongs to this replica now. It reads the clock, so it is false for a replica that has slept past its
// lease. Ask it before each effect outside of the program.
func (c *Coordinator) Owns(obj metav1.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until) && c.granted.Includes(obj)
}

func (c *Coordinator) grant(ranges Ranges, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted, c.until = ranges, until
}

// Names of leases. The member lease of a replica has its holder's name, and the ranges have the names of their numbers. One lease has the
// number of ranges as its holder: replicas that do not agree on it would not agree on owners.
const (
	memberPrefix = "member-"
	rangePrefix  = "range-"
	rangesLease  = "ranges"
)

// term is a membership of a replica, from the creation of its member lease on. A replica that has lost its lease begins another one, so
// what it held before is not mistaken for its own.
type term struct {
	*Coordinator
	ctx    context.Context
	member Lease
	// giveUp is when this replica stops by its own clock, expiry when others may own its ranges.
	giveUp, expiry time.Time
	// owned are the leases of ranges by their numbers. applied are the ranges of the last Apply that succeeded; they are all owned.
	owned   map[int]Lease
	applied []int
	// unknown is true from the begin of an Apply until one succeeds: it may have been made in part.
	unknown bool
	// applying is the Apply that runs, or nil.
	applying *application
	// seen has the version of each member lease, and since when it is known.
	seen map[string]sighted
}

type sighted struct {
	version string
	since   time.Time
}

// application is one call of Apply.
type application struct {
	numbers []int
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // set before done is closed
}

// Run takes part until ctx ends, then has nothing applied, releases its leases and returns. Its error is that of Apply, if the ranges
// could not be given up. It must not be called twice at a time.
func (c *Coordinator) Run(ctx context.Context) error {
	defer c.grant(nil, time.Time{})
	for {
		t := &term{Coordinator: c, ctx: ctx, owned: map[int]Lease{}, seen: map[string]sighted{}}
		name := fmt.Sprintf("%s-%08x", c.options.ID, rand.Uint32())
		t.member = Lease{Name: memberPrefix + name, Holder: name, Duration: c.options.LeaseDuration}
		if err := t.run(); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// run is the loop of a term. It returns once nothing is applied.
func (t *term) run() error {
	interval := t.options.LeaseDuration / 6
	for lost := false; t.ctx.Err() == nil && !lost; {
		next := time.Now().Add(interval)
		lost = t.round()
		if !t.giveUp.IsZero() && t.giveUp.Before(next) {
			next = t.giveUp
		}
		timer := time.NewTimer(time.Until(next))
		for waiting := !lost; waiting; {
			select {
			case <-timer.C:
				waiting = false
			case <-t.ctx.Done():
				waiting = false
			case <-t.applyDone():
				t.settle()
			}
		}
		timer.Stop()
		lost = lost || !t.giveUp.IsZero() && !time.Now().Before(t.giveUp)
	}
	return t.end()
}

// round renews the lease and takes a step towards this replica's share. lost is true if the lease is not this replica's any more.
func (t *term) round() (lost bool) {
	deadline := t.giveUp
	if deadline.IsZero() {
		deadline = time.Now().Add(t.options.LeaseDuration)
	}
	ctx, cancel := context.WithDeadline(t.ctx, deadline)
	defer cancel()
	lost, err := t.renew(ctx)
	if err == nil && !lost {
		lost, err = t.step(ctx)
	}
	if err != nil && t.ctx.Err() == nil {
		t.report(err)
	}
	return lost
}

// renew creates or renews the member lease. A Put whose answer was lost may have been made.
func (t *term) renew(ctx context.Context) (lost bool, err error) {
	for range 2 {
		began := time.Now()
		version, err := t.options.Leases.Put(ctx, t.member)
		switch {
		case err == nil:
			t.member.Version = version
			t.giveUp, t.expiry = began.Add(t.options.LeaseDuration*2/3), began.Add(t.options.LeaseDuration)
			t.mu.Lock()
			t.until = t.giveUp
			t.mu.Unlock()
			return false, nil
		case !errors.Is(err, ErrLeaseConflict):
			return false, fmt.Errorf("renewing its lease: %w", err)
		}
		all, err := t.options.Leases.List(ctx)
		if err != nil {
			return false, fmt.Errorf("renewing its lease: %w", err)
		}
		at := slices.IndexFunc(all, func(l Lease) bool { return l.Name == t.member.Name })
		if at < 0 {
			break
		}
		t.member.Version = all[at].Version
	}
	return true, errors.New("its lease was removed")
}

// step looks at all leases, removes those of members that have died, and acquires or gives up ranges.
func (t *term) step(ctx context.Context) (lost bool, err error) {
	began := time.Now()
	all, err := t.options.Leases.List(ctx)
	if err != nil {
		return false, fmt.Errorf("listing leases: %w", err)
	}
	ranges, stored := rangeLeases(all, t.options.Shards)
	if stored == nil {
		_, err = t.options.Leases.Put(ctx, Lease{Name: rangesLease, Holder: strconv.Itoa(t.options.Shards)})
		if errors.Is(err, ErrLeaseConflict) { // another replica was first, and is asked in the next round
			err = nil
		}
		return false, err
	}
	if stored.Holder != strconv.Itoa(t.options.Shards) {
		return false, fmt.Errorf("lease %q says that there are %s ranges, and Shards is %d: all replicas need the same", rangesLease, stored.Holder, t.options.Shards)
	}
	members := t.live(ctx, all, began)
	for number, lease := range t.owned {
		if ranges[number].Holder != lease.Holder {
			return true, fmt.Errorf("range %d was acquired by %q", number, ranges[number].Holder)
		}
	}
	for number, lease := range ranges { // also one whose Put had no answer
		if lease.Holder == t.member.Holder {
			t.owned[number] = lease
		}
	}
	if t.applying != nil {
		return false, nil
	}
	share, first := shareOf(t.member.Holder, members, t.options.Shards)
	for i := range t.options.Shards {
		number := (first + i) % t.options.Shards
		lease := ranges[number]
		if len(t.owned) >= share || slices.Contains(members, lease.Holder) {
			continue
		}
		lease.Name, lease.Holder = rangeName(number), t.member.Holder
		if lease.Version, err = t.options.Leases.Put(ctx, lease); err == nil {
			t.owned[number] = lease
		} else if !errors.Is(err, ErrLeaseConflict) {
			return false, fmt.Errorf("acquiring range %d: %w", number, err)
		}
	}
	t.apply(t.keep(share))
	return false, nil
}

// keep returns the numbers of the owned ranges that are within the share: first those that are applied.
func (t *term) keep(share int) []int {
	numbers := slices.Clone(t.applied)
	for _, number := range slices.Sorted(maps.Keys(t.owned)) {
		if !slices.Contains(t.applied, number) {
			numbers = append(numbers, number)
		}
	}
	return slices.Sorted(slices.Values(numbers[:min(share, len(numbers))]))
}

// live returns the holders of the member leases that have not expired, sorted, and removes the others.
func (t *term) live(ctx context.Context, all []Lease, asked time.Time) (members []string) {
	seen := map[string]sighted{}
	for _, lease := range all {
		if !strings.HasPrefix(lease.Name, memberPrefix) {
			continue
		}
		known, ok := t.seen[lease.Name]
		if !ok || known.version != lease.Version {
			known = sighted{lease.Version, time.Now()}
		}
		seen[lease.Name] = known
		if asked.Sub(known.since) <= lease.Duration || lease.Holder == t.member.Holder {
			members = append(members, lease.Holder)
		} else {
			_ = t.options.Leases.Delete(ctx, lease) // if it fails, another or the next round does it
		}
	}
	t.seen = seen
	slices.Sort(members)
	return members
}

// rangeLeases returns the leases of ranges by their numbers, and the lease with their count, nil if there is none.
func rangeLeases(all []Lease, shards int) (ranges map[int]Lease, count *Lease) {
	ranges = map[int]Lease{}
	for _, lease := range all {
		if lease.Name == rangesLease {
			count = &lease
		}
		text, isRange := strings.CutPrefix(lease.Name, rangePrefix)
		if number, err := strconv.Atoi(text); isRange && err == nil && number >= 0 && number < shards {
			ranges[number] = lease
		}
	}
	return ranges, count
}

func rangeName(number int) string { return rangePrefix + strconv.Itoa(number) }

// shareOf returns how many ranges a member is to have, and the number at which it begins to look for free ones.
func shareOf(member string, members []string, shards int) (share, first int) {
	rank := max(0, slices.Index(members, member))
	count := max(1, len(members))
	share = shards / count
	if rank < shards%count {
		share++
	}
	return share, rank * shards / count
}

// apply begins to apply ranges, unless they are applied. An Apply that runs is ended first.
func (t *term) apply(numbers []int) {
	if t.applying == nil && !t.unknown && slices.Equal(numbers, t.applied) {
		t.release() // what was acquired and is not within the share any more
		return
	}
	t.unknown = true
	before := t.applying
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
	a := &application{numbers: numbers, cancel: cancel, done: make(chan struct{})}
	t.applying = a
	ranges := make([]Range, len(numbers))
	for i, number := range numbers {
		ranges[i] = Split(t.options.Shards)[number]
	}
	t.grant(Union(ranges...), t.giveUp)
	if before != nil {
		before.cancel()
	}
	go func() {
		defer close(a.done)
		defer cancel()
		if before != nil {
			<-before.done
		}
		a.err = t.options.Apply(ctx, Union(ranges...))
	}()
}

func (t *term) applyDone() <-chan struct{} {
	if t.applying == nil {
		return nil
	}
	return t.applying.done
}

// settle notes the end of the Apply that ran, and releases the ranges that are not applied any more.
func (t *term) settle() {
	a := t.applying
	t.applying = nil
	if a.err != nil {
		t.report(fmt.Errorf("applying %d ranges: %w", len(a.numbers), a.err))
		return
	}
	t.applied, t.unknown = a.numbers, false
	t.release()
}

// release releases the owned ranges that are not applied. What fails is found in the next round, or expires.
func (t *term) release() {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(t.ctx), t.expiry)
	defer cancel()
	for number, lease := range t.owned {
		if slices.Contains(t.applied, number) || ctx.Err() != nil {
			continue
		}
		if err := t.options.Leases.Delete(ctx, lease); err != nil && !errors.Is(err, ErrLeaseConflict) {
			t.report(fmt.Errorf("releasing range %d: %w", number, err))
		}
		delete(t.owned, number)
	}
}

func (t *term) report(err error) {
	t.options.OnError(fmt.Errorf("replica %s: %w", t.member.Holder, err))
}

// end gives all ranges up, and releases them unless others may own them. Where the program ends, an Apply that fails is not repeated after
// the expiry.
func (t *term) end() error {
	late := time.NewTimer(time.Until(t.expiry))
	defer late.Stop()
	for t.unknown || len(t.applied) > 0 {
		t.apply(nil)
		a := t.applying
		giveUp := time.AfterFunc(max(time.Until(t.expiry), t.options.LeaseDuration/6), a.cancel)
		select {
		case <-a.done:
		case <-late.C:
			t.report(ErrInUse)
			<-a.done
		}
		giveUp.Stop()
		t.settle()
		if a.err != nil {
			if t.ctx.Err() != nil && !time.Now().Before(t.expiry) {
				return fmt.Errorf("replica %s: %w", t.member.Holder, a.err)
			}
			time.Sleep(t.options.LeaseDuration / 20)
		}
	}
	t.release()
	if t.member.Version != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.options.LeaseDuration/6)
		defer cancel()
		_ = t.options.Leases.Delete(ctx, t.member) // else it expires
	}
	return nil
}
