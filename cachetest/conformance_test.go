package cachetest_test

import (
	"testing"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/cachetest/conformance"
)

// The suites pass for this package's own sources.

func TestSourceKeepsThePromisesOfAListerWatcher(t *testing.T) {
	for name, options := range map[string]cachetest.Options{
		"unstructured":      {GroupVersionKind: podKind},
		"typed":             {NewList: newWidgetList},
		"expired on stream": {GroupVersionKind: podKind, ExpiredOnStream: true},
		"no streaming list": {
			GroupVersionKind:     podKind,
			NoWatchList:          true,
			WatchListUnsupported: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestListerWatcher(
				t, conformance.ListerWatcherConfig{Virtual: true, New: rigOf(options)})
		})
	}
	t.Run("in real time", func(t *testing.T) {
		conformance.TestListerWatcher(
			t,
			conformance.ListerWatcherConfig{
				New: rigOf(cachetest.Options{GroupVersionKind: podKind}),
			},
		)
	})
}

// rigOf returns a function that makes rigs of sources.
func rigOf(options cachetest.Options) func(testing.TB) conformance.ListerWatcherRig {
	return func(t testing.TB) conformance.ListerWatcherRig {
		source := cachetest.NewSource(options)
		t.Cleanup(source.Close)
		return conformance.RigOver(source, "shop", nil)
	}
}

func TestViewKeepsThePromisesOfAListerWatcher(t *testing.T) {
	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) conformance.ListerWatcherRig {
			source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
			t.Cleanup(source.Close)
			// Objects of other namespaces do not affect the view.
			apply(t, source, pod("elsewhere", "a"), pod("elsewhere", "b"))
			rig := conformance.RigOver(source, "shop", source.Namespace("shop"))
			update := rig.Update
			rig.Update = func(name, mark string) error {
				apply(t, source, pod("elsewhere", "a", "mark", mark))
				return update(name, mark)
			}
			return rig
		},
	})
}
