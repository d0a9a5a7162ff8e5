package cache

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
)

func podInformerOf(t *testing.T, set *InformerSet, source ListerWatcher) (*Informer[*object], func()) {
	t.Helper()
	informer, release, err := InformerOf(set, source, InformerConfig[*object]{})
	require.NoError(t, err)
	return informer, release
}

// runSet runs a set; end ends that and waits.
func runSet(t *testing.T, set *InformerSet) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- set.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-over)
	}
}

func TestASetHasOneInformerOfEachSourceAndType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source, other := newSource(t), newSource(t)
		one, _ := podInformerOf(t, &set, source)
		two, _ := podInformerOf(t, &set, source)
		three, _ := podInformerOf(t, &set, other)
		four, _, err := InformerOf(&set, source, InformerConfig[metav1.Object]{})
		require.NoError(t, err)
		require.Same(t, one, two)
		require.NotSame(t, one, three)
		require.NotSame(t, one.shared, four.shared)
		require.Len(t, set.Status(), 3)
	})
}

func TestASetRunsWhatIsMadeBeforeAndWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		before, _ := podInformerOf(t, &set, newSource(t, pod("a", "1")))
		end := runSet(t, &set)
		while, _ := podInformerOf(t, &set, newSource(t, pod("a", "2"), pod("a", "3")))
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, before.Len())
		require.Equal(t, 2, while.Len())
		end()
		require.True(t, before.Shared().IsStopped())
		require.True(t, while.Shared().IsStopped())
		require.Empty(t, set.Status())
	})
}

func TestAnInformerOfASetRunsUntilTheLastWhoWantsItHasReleasedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source := newSource(t, pod("a", "1"))
		informer, releaseOne := podInformerOf(t, &set, source)
		_, releaseTwo := podInformerOf(t, &set, source)
		end := runSet(t, &set)
		releaseOne()
		releaseOne() // the second time is nothing: one who wants it is left
		synctest.Wait()
		require.False(t, informer.Shared().IsStopped())
		releaseTwo()
		synctest.Wait()
		require.True(t, informer.Shared().IsStopped())

		anew, _ := podInformerOf(t, &set, source)
		require.NotSame(t, informer, anew)
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, anew.Len())
		end()
	})
}

func TestAnInformerThatIsStoppedIsWaitedForAndMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source := newSource(t, pod("a", "1"))
		informer, release := podInformerOf(t, &set, source)
		stays, _ := podInformerOf(t, &set, newSource(t))
		end := runSet(t, &set)
		require.NoError(t, set.Stop(t.Context(), informer.Shared()))
		require.True(t, informer.Shared().IsStopped())
		require.False(t, stays.Shared().IsStopped())
		require.ErrorContains(t, set.Stop(t.Context(), informer.Shared()), "not any more, in the set")

		anew, _ := podInformerOf(t, &set, source)
		require.NoError(t, set.WaitSynced(t.Context()))
		release() // the old one's: the new one is not concerned
		synctest.Wait()
		require.False(t, anew.Shared().IsStopped())
		end()
	})
}

func TestWhyASetHasNotSyncedIsSaidOfEachInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		broken, hangs := newSource(t), newSource(t)
		broken.FailLists(1000, errors.New("no such luck"))
		hangs.HangLists(1)
		for name, source := range map[string]ListerWatcher{"broken": broken, "hangs": hangs, "fine": newSource(t)} {
			_, _, err := InformerOf(&set, source, InformerConfig[*object]{Name: name, ReflectorOptions: ReflectorOptions{
				Strategy: ListWhole, ErrorHandler: (&heard{}).handle,
			}})
			require.NoError(t, err)
		}
		end := runSet(t, &set)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := set.WaitSynced(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "informer broken")
		require.ErrorContains(t, err, "no such luck")
		require.ErrorContains(t, err, "informer hangs")
		require.ErrorContains(t, err, string(PhaseListing))
		require.NotContains(t, err.Error(), "fine")
		end()
	})
}

func TestASetWithoutInformersHasNothingToWaitFor(t *testing.T) {
	var set InformerSet
	require.ErrorIs(t, set.WaitSynced(t.Context()), ErrNothingToWaitFor)
}

func TestASetIsShutDownAndRunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		require.NoError(t, set.Shutdown(t.Context())) // nothing runs
		source := newSource(t, pod("a", "1"))
		first, _ := podInformerOf(t, &set, source)
		runSet(t, &set)
		require.ErrorIs(t, set.Run(t.Context()), ErrAlreadyRan)
		require.NoError(t, set.Shutdown(t.Context()))
		require.True(t, first.Shared().IsStopped())

		second, _ := podInformerOf(t, &set, source)
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		require.Equal(t, 1, second.Len())
		end()
	})
}

func TestAPanicOfASourceStopsTheSetAndComesOutOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		other, _ := podInformerOf(t, &set, newSource(t))
		panics := newSource(t)
		_, _, err := InformerOf(&set, &ListWatch{
			ListFunc:  func(metav1.ListOptions) (apiruntime.Object, error) { panic("list") },
			WatchFunc: panics.Watch,
		}, InformerConfig[*object]{})
		require.NoError(t, err)
		var panicked any
		func() {
			defer func() { panicked = recover() }()
			_ = set.Run(t.Context())
		}()
		require.IsType(t, &PanicError{}, panicked)
		require.Equal(t, "list", panicked.(*PanicError).Value)
		require.True(t, other.Shared().IsStopped())
	})
}

func TestTheIndexesOfASecondConfigAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set InformerSet
		source := newSource(t, pod("a", "1"))
		byName := TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}
		podInformerOf(t, &set, source)
		informer, _, err := InformerOf(&set, source, InformerConfig[*object]{Indexes: byName})
		require.NoError(t, err)
		_, _, err = InformerOf(&set, source, InformerConfig[*object]{Indexes: byName})
		require.NoError(t, err)
		end := runSet(t, &set)
		require.NoError(t, set.WaitSynced(t.Context()))
		found, err := informer.ByIndex("name", "1")
		require.NoError(t, err)
		require.Len(t, found, 1)

		_, release, err := InformerOf(&set, source, InformerConfig[*object]{Indexes: TypedIndexers[*object]{
			"broken": func(*object) ([]string, error) { return nil, errors.New("no value") },
		}})
		require.ErrorContains(t, err, "no value")
		require.Nil(t, release)
		end()
	})
}

func TestASourceThatCannotBeComparedIsRefused(t *testing.T) {
	var set InformerSet
	_, _, err := InformerOf(&set, ListerWatcher(funcSource{}), InformerConfig[*object]{})
	require.ErrorContains(t, err, "use a pointer")
}

// funcSource is a source that is not comparable.
type funcSource struct{ _ []func() }

func (funcSource) List(metav1.ListOptions) (apiruntime.Object, error) { return nil, nil }

func (funcSource) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, nil }
