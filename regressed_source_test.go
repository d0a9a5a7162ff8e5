package cache

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// B15: a source that has gone back and says nothing of it, as one behind a balancer may,
// is asked for its newest state, and that is taken, though it is as old: it is what the
// source has. Fails if the older state is taken unasked, or refused for ever.
func TestB15ASourceThatHasGoneBackForGoodIsTakenAtItsWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions := []string{"9", "4", "4"}
		var asked []string
		source := &scripted{
			list: func(options metav1.ListOptions) (apiruntime.Object, error) {
				asked = append(asked, options.ResourceVersion)
				version := versions[min(len(asked), len(versions))-1]
				return &metav1.PartialObjectMetadataList{
					ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []metav1.PartialObjectMetadata{*podAt("a", "1", version)},
				}, nil
			},
			watch: func(context.Context, int) (watch.Interface, error) {
				p := newProbe()
				if len(asked) == 1 {
					p.events <- errorEvent(cachetest.ErrExpired())
				}
				return p, nil
			},
		}
		h := &heard{}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, NewReflectorWithOptions(source, nil, indexer, ReflectorOptions{Strategy: ListWhole, ErrorHandler: h.handle}))
		sleep(5 * time.Minute)
		assert.Equal(t, []string{"0", "9", ""}, asked)
		assert.Equal(t, []Cause{CauseExpired, CauseRegression}, h.causes())
		assert.Equal(t, "4", indexer.LastStoreSyncResourceVersion())
		assert.Equal(t, map[string]string{"a/1": "4"}, contents(indexer))
		stop()
	})
}
