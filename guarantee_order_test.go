package cache

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// sawtooth checks what one observer sees of each key: states that the source had,
// each newer than the one before.
type sawtooth struct {
	t    *testing.T
	mu   sync.Mutex
	had  map[string]bool // key@version that the source had
	last map[string]int
}

// write changes the source and notes what it has then, before anybody can see it.
func (s *sawtooth) write(source *cachetest.Source, obj *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NoError(s.t, source.Apply(obj))
	stored, err := source.Get(obj.Namespace, obj.Name)
	require.NoError(s.t, err)
	s.had[nameOf(stored)+"@"+receivedOf(stored).ResourceVersion] = true
}

func (s *sawtooth) saw(obj any) {
	key, version := nameOf(obj), receivedOf(obj).ResourceVersion
	number, err := strconv.Atoi(version)
	require.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.True(s.t, s.had[key+"@"+version], "%s@%s is a state that the source never had", key, version)
	assert.GreaterOrEqual(s.t, number, s.last[key], "%s went backwards", key)
	s.last[key] = number
}

// G2: whatever the source does, short of going back itself, no reader and no
// handler sees a key go back, or in a state that it never had. Fails if changes of
// a key are applied out of order.
func TestG2NoKeyEverGoesBack(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { noKeyGoesBack(t, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func noKeyGoesBack(t *testing.T, random *rand.Rand) {
	source := newSource(t)
	handler := &sawtooth{t: t, had: map[string]bool{}, last: map[string]int{}}
	reader := &sawtooth{t: t, had: handler.had, last: map[string]int{}}
	r := newRig(t, source, func(c *Config) {
		c.ReflectorOptions.PageSize = 5
		c.ReflectorOptions.Strategy = ListStrategy(random.IntN(4))
		c.Handler = ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, _ bool) { handler.saw(obj) },
			UpdateFunc: func(_, obj any) { handler.saw(obj) },
		}
	})
	r.run()
	for i := range 600 {
		name := itoa(random.IntN(25))
		if random.IntN(5) == 0 {
			_, _ = source.Delete("a", name)
		} else {
			handler.write(source, labelled(pod("a", name), itoa(i)))
		}
		disturb(source, random)
		if random.IntN(3) == 0 {
			sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		}
		for _, obj := range r.indexer.List() {
			reader.saw(obj)
		}
	}
	source.Heal()
	sleep(3 * time.Minute)
	r.equalsSource()
	namespaced, err := r.indexer.ByIndex(NamespaceIndex, "a")
	require.NoError(t, err)
	assert.Len(t, namespaced, len(source.Objects()))
	r.stop()
}

// disturb does one of the things that sources do, now and then.
func disturb(source *cachetest.Source, random *rand.Rand) {
	errs := []error{
		errBoom, cachetest.ErrExpired(), cachetest.ErrInternal(), cachetest.ErrTooManyRequests(1), cachetest.ErrConnectionRefused(),
	}
	err := errs[random.IntN(len(errs))]
	switch random.IntN(60) {
	case 0:
		source.BreakWatches(err)
	case 1:
		source.CloseWatches()
	case 2:
		source.FailLists(1, err)
	case 3:
		source.FailWatches(1, err)
	case 4:
		source.BreakNextWatches(1, random.IntN(4), err)
	case 5:
		source.CompactAll()
		source.CloseWatches()
	case 6:
		source.ExpireContinueTokens()
	case 7:
		source.SendBookmarks()
	case 8:
		source.WithholdInitialEventsEnd(1)
	case 9:
		source.DuplicateBookmarks(random.IntN(2) == 0)
	case 10:
		source.Silence()
	case 11:
		source.Resume()
	}
}
