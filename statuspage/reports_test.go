package statuspage_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

// reportedProgram has three caches: one that is denied, one whose type does not exist, and one that
// works.
type reportedProgram struct {
	registry statuspage.Registry
	set      cache.InformerSet
	fine     *cache.Informer[object]
}

func newReportedProgram(t *testing.T) *reportedProgram {
	p := &reportedProgram{}
	addCache := func(name, kind string, failure error) *cache.Informer[object] {
		source := newSource(t, kind, 3)
		if failure != nil {
			source.FailRequests(cachetest.Forever, failure)
		}
		informer := newInformer(name, source)
		add(t, &p.registry, name, informer)
		require.NoError(t, p.set.Add(informer))
		return informer
	}
	faults := operatorsFaults()
	addCache("accounts", "ServiceAccount", faults["forbidden"].err)
	addCache("scalers", "HorizontalPodAutoscaler", faults["missing definition"].err)
	p.fine = addCache("pods", "Pod", nil)
	t.Cleanup(start(t, func(ctx context.Context) { _ = p.set.Run(ctx) }))
	return p
}

// A timeout that does not name the denied permission:
// https://github.com/kubernetes-sigs/controller-runtime/issues/1653,
// https://github.com/crossplane/crossplane/issues/7398.
func TestAWaitThatTimesOutNamesTheDeniedPermissionAndTheType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReportedProgram(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := p.set.WaitSynced(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "informer accounts (v1 serviceaccounts) has not synced")
		assert.ErrorContains(t, err, "forbidden for 30s")
		assert.ErrorContains(t, err, `cannot list resource "orders"`)
		assert.ErrorContains(t, err, "informer scalers (v1 horizontalpodautoscalers) has not synced")
		assert.NotContains(t, err.Error(), "informer pods")
	})
}

// A program that looks healthy while one cache is denied, and reconciles nothing:
// https://github.com/kubeswift-io/kubeswift/issues/460.
func TestAProgramWithADeniedCacheIsNotHealthyAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReportedProgram(t)
		time.Sleep(4 * time.Minute)
		err := p.set.Healthy(time.Hour)
		assert.ErrorContains(t, err, "informer accounts (v1 serviceaccounts)")
		assert.ErrorContains(t, err, "forbidden")

		index := textOf(get(&p.registry, "").Body.String())
		assert.Contains(t, index, "2 of 3 caches have a problem")
		assert.Regexp(t, `accounts\s+v1 serviceaccounts\s+forbidden\s+forbidden\s+4\x{a0}min`, index)
	})
}

// One cache that never syncs, and the others wait with it:
// https://github.com/skyhook-io/radar/pull/477.
func TestACacheThatNeverSyncsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReportedProgram(t)
		began := time.Now()
		require.NoError(t, p.fine.WaitSynced(t.Context()))
		assert.Zero(t, time.Since(began))
		assert.Equal(t, 3, p.fine.Len())
		for _, status := range p.set.Status() {
			assert.Equal(t, status.Name == "pods", status.Synced, status.Name)
		}
	})
}

// A wait for an informer that was made after the others had been started:
// https://github.com/kubernetes/kubernetes/issues/92777.
func TestAWaitForAnInformerThatNobodyRunsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := newInformer("nodes", newSource(t, "Node", 3))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := late.WaitSynced(ctx)
		assert.ErrorContains(t, err, "informer nodes (v1 nodes) has not synced")
		assert.ErrorContains(t, err, "Run was not called")

		set := cache.InformerSet{}
		t.Cleanup(start(t, func(ctx context.Context) { _ = set.Run(ctx) }))
		synctest.Wait()
		require.NoError(t, set.Add(late), "a set runs informers that are added later")
		require.NoError(t, late.WaitSynced(t.Context()))
	})
}
