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
	// Leases is the store of the group's leases. All replicas of a program use the same store, and no other program
	// uses it.
	Leases Leases
	// ID identifies the replica in leases and errors: lower-case letters, digits and dashes, such as the name of a pod.
	ID string
	// Shards is the number of ranges that are assigned, the same in all replicas. Default: 16. Use several times the
	// number of replicas, so that their shares are of similar size.
	Shards int
	// LeaseDuration is how long the ranges of a dead replica stay without an owner. Default: 15 s. A replica renews its
	// lease every sixth of it, and gives up its ranges after two thirds of it without a renewal.
	LeaseDuration time.Duration
	// Apply switches this replica to ranges, and returns nil once it has stopped working on all other objects: only
	// then are the other ranges released. It is called by one goroutine at a time. It is called again if it fails, or
	// if its context ends before it returns nil. The context ends when other ranges must be applied, and when the lease
	// may expire.
	//
	//	Apply: func(ctx context.Context, ranges sharding.Ranges) error {
	//		if err := share.Apply(ctx, ranges); err != nil { // share is the Selector of the informer
	//			return err
	//		}
	//		return informer.WaitForHandler(ctx, handle, informer.ResourceVersion())
	//	}
	Apply func(ctx context.Context, ranges Ranges) error
	// OnError is called with failures of the store and of Apply, by one goroutine at a time. All are retried. Default:
	// log them.
	OnError func(err error)
}

// Coordinator assigns ranges to the running replicas, about the same number to each. NewCoordinator returns one.
//
// A range has one owner at a time. It gets a new owner only after its owner has released it, or once the owner's lease
// has expired. An owner measures its lease from before each renewal, and gives up its ranges after two thirds. Other
// replicas measure it from when they first saw the renewal. So the clocks of replicas may show different times, but
// must run at the same speed, to within a tenth.
type Coordinator struct {
	options CoordinatorOptions

	mu sync.Mutex
	// granted has the ranges that are applied or being applied. It is valid until grantedUntil.
	granted      Ranges
	grantedUntil time.Time
}

// ErrInUse is wrapped by an error passed to OnError: Apply has not returned although others may own the ranges by now.
var ErrInUse = errors.New("ranges are in use after the lease has expired")

// NewCoordinator returns a coordinator and starts no goroutine. It panics if a required option is missing or an option
// is invalid.
func NewCoordinator(options CoordinatorOptions) *Coordinator {
	options.Shards = cmp.Or(options.Shards, 16)
	options.LeaseDuration = cmp.Or(options.LeaseDuration, 15*time.Second)
	switch {
	case options.Leases == nil || options.Apply == nil:
		panic("sharding: CoordinatorOptions: Leases and Apply are required")
	case options.ID == "" || strings.Trim(options.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		panic("sharding: CoordinatorOptions: ID must consist of lower-case letters, digits and dashes")
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

// Owns reports whether an object belongs to this replica now. It compares the lease with the clock, so it is false
// after the lease has expired, even if the replica was suspended. Call it before each effect outside of the program. It
// may be called concurrently.
func (c *Coordinator) Owns(obj metav1.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.grantedUntil) && c.granted.Includes(obj)
}

func (c *Coordinator) grant(ranges Ranges, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted, c.grantedUntil = ranges, until
}

// Names of leases. A member lease of a replica has its holder's name, a range lease the range's number. The holder of
// the lease "ranges" is the number of ranges: replicas with different numbers would not agree on owners.
const (
	memberPrefix = "member-"
	rangePrefix  = "range-"
	rangesLease  = "ranges"
)

// term is one membership of a replica, which begins with the creation of its member lease. A replica that has lost its
// lease begins another term with another name, so that ranges of the old term are not its own.
type term struct {
	*Coordinator
	ctx    context.Context
	member Lease
	// renewDeadline is when this replica gives up its ranges without a renewal, expiry when others may own them.
	renewDeadline, expiry time.Time
	// owned has the leases of ranges by number. applied has the ranges of the last successful Apply, all of them owned.
	owned   map[int]Lease
	applied []int
	// applyUncertain is true from the start of an Apply until one succeeds: a failed one may have been applied in part.
	applyUncertain bool
	// applyCall is the running Apply, or nil.
	applyCall *applyCall
	// observed has the version of each member lease, and when it was first seen.
	observed map[string]observation
}

type observation struct {
	version   string
	firstSeen time.Time
}

// applyCall is one call of Apply.
type applyCall struct {
	numbers []int
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // set before done is closed
}

// Run takes part in the assignment until ctx ends. Then it applies no ranges, releases its leases and returns. It
// returns Apply's error if the ranges could not be given up. It must not be called concurrently.
func (c *Coordinator) Run(ctx context.Context) error {
	defer c.grant(nil, time.Time{})
	for {
		t := &term{Coordinator: c, ctx: ctx, owned: map[int]Lease{}, observed: map[string]observation{}}
		name := fmt.Sprintf("%s-%08x", c.options.ID, rand.Uint32())
		t.member = Lease{Name: memberPrefix + name, Holder: name, Duration: c.options.LeaseDuration}
		if err := t.run(); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// run is the loop of a term. It returns once no range is applied.
func (t *term) run() error {
	interval := t.options.LeaseDuration / 6
	for lost := false; t.ctx.Err() == nil && !lost; {
		nextRound := time.Now().Add(interval)
		lost = t.round()
		if !t.renewDeadline.IsZero() && t.renewDeadline.Before(nextRound) {
			nextRound = t.renewDeadline
		}
		timer := time.NewTimer(time.Until(nextRound))
		for waiting := !lost; waiting; {
			select {
			case <-timer.C:
				waiting = false
			case <-t.ctx.Done():
				waiting = false
			case <-t.applyDone():
				t.finishApply()
			}
		}
		timer.Stop()
		lost = lost || !t.renewDeadline.IsZero() && !time.Now().Before(t.renewDeadline)
	}
	return t.shutDown()
}

// round renews the lease and takes a step towards this replica's share. lost is true if the lease no longer belongs to
// this replica.
func (t *term) round() (lost bool) {
	deadline := t.renewDeadline
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

// renew creates or renews the member lease. If Put conflicts, an earlier Put may have succeeded without a response, so
// the version is read again.
func (t *term) renew(ctx context.Context) (lost bool, err error) {
	for range 2 {
		start := time.Now()
		version, err := t.options.Leases.Put(ctx, t.member)
		switch {
		case err == nil:
			t.member.Version = version
			t.renewDeadline, t.expiry = start.Add(t.options.LeaseDuration*2/3), start.Add(t.options.LeaseDuration)
			t.mu.Lock()
			t.grantedUntil = t.renewDeadline
			t.mu.Unlock()
			return false, nil
		case !errors.Is(err, ErrLeaseConflict):
			return false, fmt.Errorf("renew lease: %w", err)
		}
		all, err := t.options.Leases.List(ctx)
		if err != nil {
			return false, fmt.Errorf("renew lease: %w", err)
		}
		at := slices.IndexFunc(all, func(l Lease) bool { return l.Name == t.member.Name })
		if at < 0 {
			break
		}
		t.member.Version = all[at].Version
	}
	return true, errors.New("member lease was removed")
}

// step lists all leases, removes those of dead members, and acquires or gives up ranges.
func (t *term) step(ctx context.Context) (lost bool, err error) {
	start := time.Now()
	all, err := t.options.Leases.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list leases: %w", err)
	}
	ranges, countLease := rangeLeases(all, t.options.Shards)
	if countLease == nil {
		_, err = t.options.Leases.Put(ctx, Lease{Name: rangesLease, Holder: strconv.Itoa(t.options.Shards)})
		if errors.Is(err, ErrLeaseConflict) { // another replica was first; the next round reads its lease
			err = nil
		}
		return false, err
	}
	if countLease.Holder != strconv.Itoa(t.options.Shards) {
		return false, fmt.Errorf("lease %q is for %.20q ranges, but Shards is %d: all replicas need the same", rangesLease, countLease.Holder, t.options.Shards)
	}
	members := t.liveMembers(ctx, all, start)
	for number, lease := range t.owned {
		if ranges[number].Holder != lease.Holder {
			return true, fmt.Errorf("range %d was acquired by %.100q", number, ranges[number].Holder)
		}
	}
	for number, lease := range ranges { // including one whose Put had no response
		if lease.Holder == t.member.Holder {
			t.owned[number] = lease
		}
	}
	if t.applyCall != nil {
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
			return false, fmt.Errorf("acquire range %d: %w", number, err)
		}
	}
	t.apply(t.rangesToKeep(share))
	return false, nil
}

// rangesToKeep returns the numbers of the owned ranges within the share, those that are applied first.
func (t *term) rangesToKeep(share int) []int {
	numbers := slices.Clone(t.applied)
	for _, number := range slices.Sorted(maps.Keys(t.owned)) {
		if !slices.Contains(t.applied, number) {
			numbers = append(numbers, number)
		}
	}
	return slices.Sorted(slices.Values(numbers[:min(share, len(numbers))]))
}

// liveMembers returns the holders of unexpired member leases, sorted, and removes the expired ones.
func (t *term) liveMembers(ctx context.Context, all []Lease, listedAt time.Time) (members []string) {
	observed := map[string]observation{}
	for _, lease := range all {
		if !strings.HasPrefix(lease.Name, memberPrefix) {
			continue
		}
		previous, ok := t.observed[lease.Name]
		if !ok || previous.version != lease.Version {
			previous = observation{lease.Version, time.Now()}
		}
		observed[lease.Name] = previous
		if listedAt.Sub(previous.firstSeen) <= lease.Duration || lease.Holder == t.member.Holder {
			members = append(members, lease.Holder)
		} else {
			_ = t.options.Leases.Delete(ctx, lease) // on failure another replica or the next round retries
		}
	}
	t.observed = observed
	slices.Sort(members)
	return members
}

// rangeLeases returns the leases of ranges by number, and the lease with their count, nil if there is none.
func rangeLeases(all []Lease, shards int) (ranges map[int]Lease, count *Lease) {
	ranges = map[int]Lease{}
	for _, lease := range all {
		if lease.Name == rangesLease {
			count = &lease
		}
		number, err := strconv.Atoi(strings.TrimPrefix(lease.Name, rangePrefix))
		if err == nil && number >= 0 && number < shards && lease.Name == rangeName(number) { // not range-00
			ranges[number] = lease
		}
	}
	return ranges, count
}

func rangeName(number int) string { return rangePrefix + strconv.Itoa(number) }

// shareOf returns the number of ranges for a member, and the number at which it starts looking for free ones.
func shareOf(member string, members []string, shards int) (share, first int) {
	rank := max(0, slices.Index(members, member))
	count := max(1, len(members))
	share = shards / count
	if rank < shards%count {
		share++
	}
	return share, rank * shards / count
}

// apply starts to apply ranges, unless they are applied already. A running Apply is cancelled first.
func (t *term) apply(numbers []int) {
	if t.applyCall == nil && !t.applyUncertain && slices.Equal(numbers, t.applied) {
		t.release() // ranges that were acquired and are no longer within the share
		return
	}
	t.applyUncertain = true
	previous := t.applyCall
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
	a := &applyCall{numbers: numbers, cancel: cancel, done: make(chan struct{})}
	t.applyCall = a
	ranges := make([]Range, len(numbers))
	for i, number := range numbers {
		ranges[i] = Split(t.options.Shards)[number]
	}
	t.grant(Union(ranges...), t.renewDeadline)
	if previous != nil {
		previous.cancel()
	}
	go func() {
		defer close(a.done)
		defer cancel()
		if previous != nil {
			<-previous.done
		}
		a.err = t.options.Apply(ctx, Union(ranges...))
	}()
}

func (t *term) applyDone() <-chan struct{} {
	if t.applyCall == nil {
		return nil
	}
	return t.applyCall.done
}

// finishApply records the end of an Apply, and releases the ranges that are no longer applied.
func (t *term) finishApply() {
	a := t.applyCall
	t.applyCall = nil
	if a.err != nil {
		t.report(fmt.Errorf("apply %d ranges: %w", len(a.numbers), a.err))
		return
	}
	t.applied, t.applyUncertain = a.numbers, false
	t.release()
}

// release releases owned ranges that are not applied. If that fails, the next round finds the lease again, or it
// expires.
func (t *term) release() {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(t.ctx), t.expiry)
	defer cancel()
	for number, lease := range t.owned {
		if slices.Contains(t.applied, number) || ctx.Err() != nil {
			continue
		}
		if err := t.options.Leases.Delete(ctx, lease); err != nil && !errors.Is(err, ErrLeaseConflict) {
			t.report(fmt.Errorf("release range %d: %w", number, err))
		}
		delete(t.owned, number)
	}
}

func (t *term) report(err error) {
	t.options.OnError(fmt.Errorf("replica %s: %w", t.member.Holder, err))
}

// shutDown applies no ranges, and releases all leases unless others may own them. If ctx has ended, a failing Apply is
// not retried after the expiry.
func (t *term) shutDown() error {
	expired := time.NewTimer(time.Until(t.expiry))
	defer expired.Stop()
	for t.applyUncertain || len(t.applied) > 0 {
		t.apply(nil)
		a := t.applyCall
		cancelTimer := time.AfterFunc(max(time.Until(t.expiry), t.options.LeaseDuration/6), a.cancel)
		select {
		case <-a.done:
		case <-expired.C:
			t.report(ErrInUse)
			<-a.done
		}
		cancelTimer.Stop()
		t.finishApply()
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
		_ = t.options.Leases.Delete(ctx, t.member) // otherwise it expires
	}
	return nil
}
