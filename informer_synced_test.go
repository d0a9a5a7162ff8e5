package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

// polledSync is an InformerSynced that is true from a time on and counts its calls.
type polledSync struct {
	since time.Time
	calls []time.Duration
	begin time.Time
}

func syncedAfter(delay time.Duration) *polledSync {
	return &polledSync{begin: time.Now(), since: time.Now().Add(delay)}
}

func (a *polledSync) synced() bool {
	a.calls = append(a.calls, time.Since(a.begin))
	return !time.Now().Before(a.since)
}

func TestPollingBeginsQuicklyAndSettlesAt100ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := syncedAfter(400 * time.Millisecond)
		assert.True(t, WaitForCacheSync(nil, a.synced))
		ms := time.Millisecond
		assert.Equal(t, []time.Duration{0, 1 * ms, 3 * ms, 7 * ms, 15 * ms, 31 * ms, 63 * ms, 127 * ms, 227 * ms, 327 * ms, 427 * ms}, a.calls)
	})
}

func TestCachesThatHaveSyncedNeedNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		close(stopped)
		begin := time.Now()
		a, b := syncedAfter(0), syncedAfter(0)
		assert.True(t, WaitForCacheSync(nil, a.synced, b.synced))
		assert.True(t, WaitForCacheSync(stopped, a.synced), "even if stopped")
		assert.True(t, WaitForCacheSync(stopped), "none, as in client-go")
		assert.False(t, WaitForCacheSync(stopped, a.synced, syncedAfter(time.Hour).synced))
		assert.Zero(t, time.Since(begin))
		assert.Len(t, a.calls, 3)
		assert.Len(t, b.calls, 1)
	})
}

// One that was true is asked again: all must be true together.
func TestAllCachesMustBeSyncedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		fickle := func() bool {
			return time.Since(begin) != 0 && time.Since(begin) < 20*time.Millisecond || time.Since(begin) > 200*time.Millisecond
		}
		assert.True(t, WaitForCacheSync(nil, fickle, syncedAfter(25*time.Millisecond).synced))
		assert.Equal(t, 227*time.Millisecond, time.Since(begin))
	})
}

func TestAStopEndsPollingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		stop := make(chan struct{})
		time.AfterFunc(250*time.Millisecond, func() { close(stop) })
		assert.False(t, WaitForCacheSync(stop, func() bool { return false }))
		assert.Equal(t, 250*time.Millisecond, time.Since(begin), "in the middle of a pause")
	})
}

func TestANilFunctionIsAMistakeAndNoHang(t *testing.T) {
	never := func() bool { t.Error("asked"); return false }
	out := captureKlog(t, 0)
	assert.False(t, WaitForCacheSync(nil, never, nil, never))
	assert.False(t, WaitForNamedCacheSync("tests", nil, never, nil))
	assert.False(t, WaitForNamedCacheSyncWithContext(t.Context(), nil))
	all := out.all()
	require.Len(t, all, 3)
	assert.Contains(t, all[0], `function 2 of 3 is nil: `)
	assert.Regexp(t, `^E\d\d informer_synced_test.go "Cannot wait for caches" err="function 2 of 2 is nil: .*pass HasSynced.*controller="tests"`, all[1])
	assert.Contains(t, all[2], `function 1 of 1 is nil: `)
}

func TestNamedWaitsLogTheirOutcomeForTheirCaller(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	stopped := make(chan struct{})
	close(stopped)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	out := captureKlog(t, 0)
	assert.True(t, WaitForNamedCacheSync("tests", nil, yes))
	assert.False(t, WaitForNamedCacheSync("tests", stopped, no))
	for _, line := range out.all() {
		assert.Contains(t, line, ` informer_synced_test.go "`)
	}
	assert.Equal(t, []string{
		`"Waiting until caches have synced" controller="tests"`,
		`"Caches have synced" controller="tests"`,
		`"Waiting until caches have synced" controller="tests"`,
		`"Stopped before caches had synced" controller="tests"`,
	}, lineTexts(out.all()))

	out = &logLines{}
	logger := klog.LoggerWithName(out.logger(0), "mine")
	assert.True(t, WaitForNamedCacheSyncWithContext(klog.NewContext(ended, logger), yes), "ended, and synced")
	assert.False(t, WaitForNamedCacheSyncWithContext(klog.NewContext(ended, logger), no))
	assert.Equal(t, []string{
		`"Waiting until caches have synced" logger="mine"`,
		`"Caches have synced" logger="mine"`,
		`"Waiting until caches have synced" logger="mine"`,
		`"Stopped before caches had synced" logger="mine"`,
	}, lineTexts(out.all()))
}
