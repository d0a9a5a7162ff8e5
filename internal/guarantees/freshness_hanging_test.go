package guarantees

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// Fails if Verify of a namespace waits for that of another, whose list never succeeds or hangs.
func TestVerifyIntervalOfANamespaceDoesNotWaitForOtherNamespaces(t *testing.T) {
	hangs := map[string]func(*cachetest.Source){
		"fails": func(s *cachetest.Source) { s.FailLists(1_000_000, cachetest.ErrInternal()) },
		"hangs": func(s *cachetest.Source) { s.HangListsIgnoringContext(1) },
	}
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad, good := newSource(t), newSource(t, pod("good", "1"), pod("good", "2"))
				hang(bad)
				informer := cache.NewTypedInformer(nil, cache.InformerConfig[*object]{
					Namespaces:       map[string]cache.Source{"bad": bad.Namespace("bad"), "good": good.Namespace("good")},
					VerifyInterval:   time.Hour,
					ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- informer.Run(ctx) }()
				synctest.Wait()
				_, err := good.DeleteSilently("good", "2")
				require.NoError(t, err)
				time.Sleep(2 * time.Hour)
				require.Equal(t, 1, informer.Len(), "Verify has removed the object that the source lacks")
				cancel()
				bad.Close()
				require.NoError(t, <-ended)
			})
		})
	}
}

// Fails if the end of a context that another namespace has used up hides a result.
func TestFreshFailsOnlyForTheNamespacesThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := newSource(t), newSource(t, pod("good", "1"))
		bad.HangLists(1_000_000)
		informer := cache.NewTypedInformer(nil, cache.InformerConfig[*object]{
			Name:             "pods",
			Namespaces:       map[string]cache.Source{"bad": bad.Namespace("bad"), "good": good.Namespace("good")},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- informer.Run(ctx) }()
		synctest.Wait()
		for range 20 { // a select chooses by chance
			short, stop := context.WithTimeout(ctx, time.Second)
			err := informer.Fresh(short)
			stop()
			require.ErrorContains(t, err, "pods/bad")
			require.NotContains(t, err.Error(), "pods/good")
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// Fails if a call of Fresh whose request hangs, with its context or for ever, delays the calls after
// it, also those that begin soon.
func TestACallOfFreshThatHangsDelaysNoLaterOne(t *testing.T) {
	hangs := map[string]func(*cachetest.Source){
		"a list":                           func(s *cachetest.Source) { s.HangLists(1) },
		"a list that ignores its context":  func(s *cachetest.Source) { s.HangListsIgnoringContext(1) },
		"a watch":                          func(s *cachetest.Source) { s.HangWatches(1) },
		"a watch that ignores its context": func(s *cachetest.Source) { s.HangWatchesIgnoringContext(1) },
	}
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				informer := runInformer(t, source, cache.InformerConfig[*object]{})
				hang(source)
				source.Advance(5) // so that Fresh needs a watch
				first := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { first <- informer.Fresh(ctx) }()
				time.Sleep(time.Second)
				for range 3 {
					began := time.Now()
					require.NoError(t, informer.Fresh(t.Context()))
					require.Less(t, time.Since(began), 4*time.Second)
				}
				cancel()
				require.Error(t, <-first)
				source.Close()
			})
		})
	}
}

// Fails if callers that wait for a source that hangs make more than one request every 2 s.
func TestCallsOfFreshShareTheRequestsToASourceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		source.HangLists(11)
		before := source.ListCalls()
		results := make(chan error, 100)
		ctx, cancel := context.WithCancel(t.Context())
		for range cap(results) {
			go func() { results <- informer.Fresh(ctx) }()
		}
		time.Sleep(20*time.Second + time.Millisecond)
		require.Equal(t, 11, source.ListCalls()-before)

		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, results, cap(results)-11, "the next request was for all that waited")
		cancel()
	})
}

// Fails if a watch that hangs ends the calls of Verify at intervals.
func TestVerifyAtIntervalsContinuesAfterAWatchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newSource(t, pod("a", "1"), pod("a", "2")), &errorRecorder{}
		informer := runInformer(t, source, cache.InformerConfig[*object]{
			VerifyInterval:   time.Minute,
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
		})
		source.HangWatches(1)
		source.Advance(5)
		time.Sleep(2 * time.Minute)
		before := source.ListCalls()
		time.Sleep(time.Hour)
		require.Greater(t, source.ListCalls()-before, 50)
		require.Len(t, reported.all(), 1)
		require.Equal(t, cache.CauseOverdueWatch, cache.CauseOf(reported.all()[0]))
		require.Equal(t, 2, informer.Len())
	})
}

// Fails if Fresh needs the version before the items.
func TestFreshReadsAListWhoseVersionFollowsItsItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &lateVersionSource{*newChangingSource("5")}
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		require.NoError(t, informer.Fresh(t.Context()))
		require.NoError(t, informer.Verify(t.Context()))
	})
}

// lateVersionSource lists two objects item by item, whatever the limit, and then the version.
type lateVersionSource struct{ changingSource }

func (s *lateVersionSource) ListItems(_ context.Context, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
	for _, name := range []string{"1", "2"} {
		if err := take(metav1.ListMeta{}, podAt("a", name, "5")); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "5"}, nil
}

// changingSource has one object, whose version need not be decimal.
type changingSource struct {
	version, object string
	tokens          []string
	// afterList is called after a list was made, if it is not nil.
	afterList func()
	lists     int
}

func newChangingSource(version string) *changingSource {
	return &changingSource{version: version, object: version}
}

func (s *changingSource) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}
	if len(s.tokens) > 0 {
		list.Continue = s.tokens[s.lists%len(s.tokens)]
	}
	list.Items = []object{*podAt("a", "1", s.object)}
	s.lists++
	if s.afterList != nil {
		s.afterList()
	}
	return list, nil
}

func (s *changingSource) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// Fails if a change after the list is a difference because the versions are in no order.
func TestVerifyTakesNoLaterChangeOfASourceWithoutDecimalVersionsForADifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newChangingSource("v1")
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		store := informer.Shared().GetStore()
		must(t, store.Update(podAt("a", "1", "v0")))
		var found *cache.DivergenceError
		require.ErrorAs(t, informer.Verify(t.Context()), &found, "the same difference twice")
		require.Equal(t, []string{"a/1"}, found.Outdated)

		// As if a change and its event came between the first list and its comparison, and the next
		// list had the change.
		source.afterList = func() {
			source.afterList = nil
			source.object = "v2"
			must(t, store.Update(podAt("a", "1", "v2")))
		}
		require.NoError(t, informer.Verify(t.Context()))
	})
}

// Fails if Verify of a source whose continue tokens alternate never ends.
func TestVerifyOfASourceThatAlternatesContinueTokensEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newChangingSource("5")
		informer := runInformer(t, source, cache.InformerConfig[*object]{})
		source.tokens = []string{"x", "y"}
		err := informer.Verify(t.Context())
		require.ErrorContains(t, err, "repeated its continue token")
		require.False(t, errors.As(err, new(*cache.DivergenceError)))
		require.Less(t, source.lists, 10)
	})
}
