package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	serversharding "k8s.io/apiserver/pkg/sharding"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

// The feature gate is of the process. No other test sends a shardSelector.
func TestReplicasShareTheObjectsOfAServerWithAndWithoutShardSelectors(t *testing.T) {
	for _, filters := range []bool{false, true} {
		// Lists of custom resources are filtered and do not say so.
		by := map[bool]sharding.FilteredBy{false: sharding.Client, true: sharding.Unknown}[filters]
		t.Run(fmt.Sprint("filtered by the server: ", filters), func(t *testing.T) {
			setGate(t, filters)
			t.Cleanup(func() { setGate(t, false) })
			r := newRig(t, fmt.Sprint("shards-", filters))
			r.create(t, 0, 90)
			parts := sharding.Split(3)
			var replicas []*cache.Informer[*object]
			var selectors []*sharding.Selector
			for i, part := range parts {
				var source cache.Source = r.source(t, nil)
				if i == 2 {
					source = &cache.ListWatch{ // by client-go's client
						ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
							return r.client.List(ctx, options)
						},
						WatchFuncWithContext: r.client.Watch,
					}
				}
				selectors = append(selectors, sharding.NewSelector(part))
				replicas = append(replicas, cache.NewTypedInformer(source, cache.InformerConfig[*object]{
					ReflectorOptions: cache.ReflectorOptions{ShardSelector: selectors[i]},
				}))
				run(t, replicas[i])
				require.NoError(t, replicas[i].WaitSynced(within(t, patience)))
				require.Equal(t, &sharding.Status{Selector: sharding.Union(part).String(), FilteredBy: by}, replicas[i].Status().Shard)
				require.NotZero(t, replicas[i].Len())
			}
			requireShares(t, r, replicas, selectors)
			sent := len(r.objects(t, metav1.ListOptions{ShardSelector: sharding.Union(parts[0]).String()}))
			require.Equal(t, map[bool]int{false: 90, true: replicas[0].Len()}[filters], sent)

			r.create(t, 90, 120)
			for n := range 30 {
				r.paint(t, 2*n, "red")
				r.delete(t, 2*n+1)
			}
			requireShares(t, r, replicas, selectors)

			for i, selector := range selectors { // each takes over from its neighbor
				require.NoError(t, selector.Apply(within(t, patience), sharding.Union(parts[(i+1)%3])))
			}
			requireShares(t, r, replicas, selectors)
			for _, replica := range replicas {
				require.Equal(t, by, replica.Status().Shard.FilteredBy)
				require.Zero(t, replica.Status().ConsecutiveFailures)
			}
		})
	}
}

func TestListsOfBuiltInTypesSayWhichShardTheyAre(t *testing.T) {
	for i := range 20 {
		_, err := common.cluster.Define(t.Context(), fmt.Sprintf("kind%ds", i))
		require.NoError(t, err)
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, metadata := range []bool{false, true} {
		for _, filters := range []bool{false, true} {
			by := map[bool]sharding.FilteredBy{false: sharding.Client, true: sharding.Server}[filters]
			if metadata && filters {
				by = sharding.Unknown // lists of metadata alone do not say it
			}
			t.Run(fmt.Sprintf("metadata alone: %t, filtered by %q", metadata, by), func(t *testing.T) {
				setGate(t, filters)
				t.Cleanup(func() { setGate(t, false) })
				total := 0
				for _, part := range sharding.Split(2) {
					source := common.source(t, func(o *kubeapi.Options) {
						o.Resource, o.Namespace = definitions, ""
						if metadata {
							o.ObjectType = &metav1.PartialObjectMetadata{}
						}
					})
					options := cache.ReflectorOptions{ShardSelector: sharding.NewSelector(part)}
					var status func() cache.Status
					var count func() int
					if metadata {
						informer := cache.NewTypedInformer(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{ReflectorOptions: options})
						run(t, informer)
						require.NoError(t, informer.WaitSynced(within(t, patience)))
						status, count = informer.Status, informer.Len
					} else {
						informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{ReflectorOptions: options})
						run(t, informer)
						require.NoError(t, informer.WaitSynced(within(t, patience)))
						status, count = informer.Status, informer.Len
					}
					require.NotZero(t, count())
					total += count()
					require.Equal(t, by, status().Shard.FilteredBy)
				}
				require.GreaterOrEqual(t, total, 22)
			})
		}
	}
}

func setGate(t *testing.T, on bool) {
	require.NoError(t, utilfeature.DefaultMutableFeatureGate.Set(fmt.Sprintf("%s=%t", features.ShardedListAndWatch, on)))
}

// requireShares waits until each object of the server is at exactly one replica: that with its
// hash.
func requireShares(t *testing.T, r *rig, replicas []*cache.Informer[*object], selectors []*sharding.Selector) {
	t.Helper()
	truth := map[string]string{}
	for key, obj := range r.objects(t, metav1.ListOptions{}) {
		truth[key] = obj.GetResourceVersion()
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := map[string]string{}
		for i, replica := range replicas {
			for key, obj := range replica.All() {
				require.NotContains(c, all, key)
				require.True(c, selectors[i].Includes(obj), key)
				all[key] = obj.GetResourceVersion()
			}
		}
		require.Equal(c, truth, all)
	}, patience, 50*time.Millisecond)
}

func TestTheServersParserAcceptsOurSelectors(t *testing.T) {
	parts := sharding.Split(7)
	for _, ranges := range []sharding.Ranges{sharding.Everything(), sharding.Union(parts[0]), sharding.Union(parts[1], parts[3], parts[6])} {
		parsed, err := serversharding.Parse(ranges.String())
		require.NoError(t, err)
		require.Equal(t, ranges.String(), parsed.String())
	}
}
