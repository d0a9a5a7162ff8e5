package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/sharding"
)

var errAway = errors.New("the store is away")

// network is a replica's connection to the store: requests and responses may be lost or late.
type network struct {
	sharding.Leases
	mu     sync.Mutex
	cut    bool
	lossy  bool
	random *rand.Rand
}

func (n *network) set(cut, lossy bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut, n.lossy = cut, lossy
}

// pass sends a call through the network: request and answer report whether they arrive.
func (n *network) pass(ctx context.Context) (request, answer bool) {
	n.mu.Lock()
	cut, lossy, delay := n.cut, n.lossy, time.Duration(0)
	request, answer = true, true
	if lossy {
		request, answer = n.random.IntN(5) > 0, n.random.IntN(5) > 0
		delay = time.Duration(n.random.IntN(4000)) * time.Millisecond
	}
	n.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return request && !cut && lossy, false // it may still arrive
	}
	return request && !cut, answer && !cut
}

func (n *network) List(ctx context.Context) ([]sharding.Lease, error) {
	if request, answer := n.pass(ctx); !request || !answer {
		return nil, errAway
	}
	return n.Leases.List(ctx)
}

func (n *network) Put(ctx context.Context, lease sharding.Lease) (string, error) {
	request, answer := n.pass(ctx)
	if !request {
		return "", errAway
	}
	version, err := n.Leases.Put(context.WithoutCancel(ctx), lease)
	if !answer {
		return "", errAway
	}
	return version, err
}

func (n *network) Delete(ctx context.Context, lease sharding.Lease) error {
	request, answer := n.pass(ctx)
	if !request {
		return errAway
	}
	err := n.Leases.Delete(context.WithoutCancel(ctx), lease)
	if !answer {
		return errAway
	}
	return err
}

// worker is a replica with a coordinator.
type worker struct {
	*sharding.Coordinator
	network *network
	cancel  context.CancelFunc
	done    chan struct{}
	err     error

	mu sync.Mutex
	// using has the ranges that it works on: from the beginning of an Apply with them to the end of one without them.
	using sharding.Ranges
	// took is the duration of an Apply. If flaky is set, every other one fails.
	took   time.Duration
	flaky  bool
	errs   []error
	applys int
}

func (w *worker) apply(ctx context.Context, ranges sharding.Ranges) error {
	w.mu.Lock()
	w.applys++
	w.using = sharding.Union(append(append(sharding.Ranges{}, w.using...), ranges...)...)
	took := w.took
	w.mu.Unlock()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flaky && w.applys%2 == 1 {
		return errAway
	}
	w.using = ranges
	return nil
}

func (w *worker) uses(obj *object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.using.Includes(obj)
}

const shards = 12

// fleet has workers with a common store, and sample objects.
type fleet struct {
	*testing.T
	store   sharding.MemoryLeases
	workers []*worker
	objects []*object
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{T: t}
	for _, part := range sharding.Split(shards) {
		obj := order("sample")
		obj.UID = uidIn(sharding.Union(part))
		f.objects = append(f.objects, obj)
	}
	return f
}

func (f *fleet) start(seed uint64) *worker {
	w := &worker{network: &network{Leases: &f.store, random: rand.New(rand.NewPCG(seed, uint64(len(f.workers))))}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.Coordinator = sharding.NewCoordinator(sharding.CoordinatorOptions{
		Leases: w.network, ID: fmt.Sprint("worker-", len(f.workers)), Shards: shards, Apply: w.apply,
		OnError: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.errs = append(w.errs, err)
		},
	})
	f.workers = append(f.workers, w)
	go func() { defer close(w.done); w.err = w.Run(ctx) }()
	f.Cleanup(func() { w.cancel(); w.network.set(false, false); <-w.done })
	return w
}

// check requires that no range has two owners, and returns how many have one.
func (f *fleet) check() (owned int) {
	for i, obj := range f.objects {
		var owners, users []int
		for n, w := range f.workers {
			if w.Owns(obj) {
				owners = append(owners, n)
				require.True(f, w.uses(obj))
			}
			if w.uses(obj) {
				users = append(users, n)
			}
		}
		require.LessOrEqual(f, len(owners), 1, "owners of range %d at %v: %v", i, time.Now(), owners)
		require.LessOrEqual(f, len(users), 1, "users of range %d at %v: %v", i, time.Now(), users)
		owned += len(owners)
	}
	return owned
}

// watch checks every 50 ms.
func (f *fleet) watch(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		f.check()
	}
}

// counts returns the number of ranges of each worker.
func (f *fleet) counts() (counts []int) {
	for _, w := range f.workers {
		n := 0
		for _, obj := range f.objects {
			if w.Owns(obj) {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts
}

func TestOneReplicaOwnsEverythingAndSharesItWithNewReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.start(1)
		f.watch(time.Second + 15*time.Second/6)
		require.Equal(t, []int{12}, f.counts())
		f.start(2)
		f.watch(10 * time.Second)
		require.Equal(t, []int{6, 6}, f.counts())
		f.start(3)
		f.watch(10 * time.Second)
		require.Equal(t, []int{4, 4, 4}, f.counts())
		before := f.workers[0].applys
		f.watch(time.Minute)
		require.Equal(t, before, f.workers[0].applys, "nothing is applied while nothing changes")

		f.workers[1].cancel() // regular shutdown: its ranges are free at once
		f.watch(6 * time.Second)
		require.Equal(t, []int{6, 0, 6}, f.counts())
		require.NoError(t, f.workers[1].err)
		for _, w := range f.workers {
			require.Empty(t, w.errs)
		}
	})
}

// Fails if such a lease, which anybody may have made, stands for the range.
func TestALeaseWithAnotherNameThanItsRangeIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		_, err := f.store.Put(t.Context(), sharding.Lease{Name: "range-00", Holder: "nobody", Duration: time.Second})
		require.NoError(t, err)
		f.start(1)
		f.watch(10 * time.Second)
		require.Equal(t, []int{12}, f.counts())
		all, err := f.store.List(t.Context())
		require.NoError(t, err)
		require.Len(t, slices.DeleteFunc(all, func(l sharding.Lease) bool { return l.Name != "range-0" && l.Holder != "nobody" }), 2)
	})
}

func TestTheRangesOfAReplicaThatIsCutOffAreOwnedByOthersAfterItHasGivenThemUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		for i := range 3 {
			f.start(uint64(i))
		}
		f.watch(20 * time.Second)
		require.Equal(t, []int{4, 4, 4}, f.counts())
		f.workers[2].network.set(true, false)
		cutAt := time.Now()
		for f.counts()[2] > 0 {
			f.watch(50 * time.Millisecond)
		}
		require.LessOrEqual(t, time.Since(cutAt), 10*time.Second, "it gives up at two thirds of the lease")
		for f.check() < shards {
			f.watch(50 * time.Millisecond)
		}
		require.LessOrEqual(t, time.Since(cutAt), 15*time.Second+2*15*time.Second/6)
		require.Equal(t, []int{6, 6, 0}, f.counts())
		f.workers[2].network.set(false, false)
		f.watch(20 * time.Second)
		require.Equal(t, []int{4, 4, 4}, f.counts())
	})
}

func TestARangeIsReleasedOnlyAfterApplyHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		first := f.start(1)
		f.watch(5 * time.Second)
		first.mu.Lock()
		first.took = time.Minute
		first.mu.Unlock()
		f.start(2)
		f.watch(time.Minute)
		require.Equal(t, []int{6, 0}, f.counts(), "it still works on what it gives up")
		f.watch(10 * time.Second)
		require.Equal(t, []int{6, 6}, f.counts())
	})
}

func TestAnApplyThatWasCutShortIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		w := f.start(1)
		w.mu.Lock()
		w.took = 5 * time.Second
		w.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.True(t, w.uses(f.objects[0]))
		w.cancel()
		<-w.done
		require.NoError(t, w.err)
		require.False(t, w.uses(f.objects[0]))
		left, err := f.store.List(t.Context())
		require.NoError(t, err)
		require.Len(t, left, 1, "the number of ranges: %v", left)
	})
}

func TestAnApplyThatOutlivesTheLeaseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		w := f.start(1)
		f.watch(5 * time.Second)
		w.mu.Lock()
		w.took = time.Hour
		w.mu.Unlock()
		w.network.set(true, false)
		time.Sleep(16 * time.Second)
		synctest.Wait()
		w.mu.Lock()
		w.took = 0
		err := errors.Join(w.errs...)
		w.mu.Unlock()
		require.ErrorIs(t, err, sharding.ErrInUse)
		for _, obj := range f.objects {
			require.False(t, w.Owns(obj))
		}
	})
}

func TestReplicasThatDoNotAgreeOnTheNumberOfRangesOwnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.start(1)
		f.watch(5 * time.Second)
		var failed error
		other := sharding.NewCoordinator(sharding.CoordinatorOptions{
			Leases: &f.store, ID: "other", Shards: shards + 1, OnError: func(err error) { failed = err },
			Apply: func(context.Context, sharding.Ranges) error { panic("it has no ranges") },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, other.Run(ctx))
		require.ErrorContains(t, failed, "all replicas need the same")
	})
}

func TestNoRangeHasTwoOwnersWhateverTheNetworkDoes(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 5
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, random := newFleet(t), rand.New(rand.NewPCG(seed, 9))
				for i := range 3 {
					f.start(seed + uint64(i))
				}
				for range 30 {
					w := f.workers[random.IntN(len(f.workers))]
					switch random.IntN(10) {
					case 0:
						w.network.set(true, false)
					case 1, 5, 6:
						w.network.set(false, true)
					case 7:
						w.mu.Lock()
						w.flaky = !w.flaky
						w.mu.Unlock()
					case 2, 8:
						w.network.set(false, false)
					case 3:
						w.mu.Lock()
						w.took = time.Duration(random.IntN(1500)) * time.Millisecond // twice that is less than the third of a lease in which an owner gives up its ranges
						w.mu.Unlock()
					case 4:
						if len(f.workers) < 8 {
							f.start(seed)
						}
					default:
						w.cancel()
					}
					f.watch(time.Duration(random.IntN(12000)) * time.Millisecond)
				}
				last := f.start(seed)
				for _, w := range f.workers {
					w.network.set(false, false)
					w.mu.Lock()
					w.took, w.flaky = 0, false
					w.mu.Unlock()
					if w != last && random.IntN(2) == 0 {
						w.cancel()
					}
				}
				f.watch(90 * time.Second)
				require.Equal(t, shards, f.check(), "every range has an owner in the end")
			})
		})
	}
}
