package cachetest_test

import (
	"testing"

	"github.com/watchmirror/cache/cachetest"
)

// The suites pass for this package's own sources.

func TestSourceKeepsThePromisesOfAListerWatcher(t *testing.T) {
	for name, options := range map[string]cachetest.Options{
		"unstructured":      {GroupVersionKind: podKind},
		"typed":             {NewList: newWidgetList},
		"expired on stream": {GroupVersionKind: podKind, ExpiredOnStream: true},
		"no streaming list": {GroupVersionKind: podKind, NoWatchList: true, WatchListUnsupported: true},
	} {
		t.Run(name, func(t *testing.T) {
			cachetest.TestListerWatcher(t, cachetest.ListerWatcherConfig{Virtual: true, New: rigOf(options)})
		})
	}
	t.Run("in real time", func(t *testing.T) {
		cachetest.TestListerWatcher(t, cachetest.ListerWatcherConfig{New: rigOf(cachetest.Options{GroupVersionKind: podKind})})
	})
}

// rigOf returns a function that makes rigs of sources.
func rigOf(options cachetest.Options) func(testing.TB) cachetest.ListerWatcherRig {
	return func(t testing.TB) cachetest.ListerWatcherRig {
		source := cachetest.NewSource(options)
		t.Cleanup(source.Close)
		return cachetest.RigOver(source, "shop", nil)
	}
}

func TestViewKeepsThePromisesOfAListerWatcher(t *testing.T) {
	cachetest.TestListerWatcher(t, cachetest.ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) cachetest.ListerWatcherRig {
			source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
			t.Cleanup(source.Close)
			// Objects of other namespaces do not affect the view.
			apply(t, source, pod("elsewhere", "a"), pod("elsewhere", "b"))
			rig := cachetest.RigOver(source, "shop", source.Namespace("shop"))
			update := rig.Update
			rig.Update = func(name, mark string) error {
				apply(t, source, pod("elsewhere", "a", "mark", mark))
				return update(name, mark)
			}
			return rig
		},
	})
}
