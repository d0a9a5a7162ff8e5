package conformance

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// relisting makes a fault from a function that changes the options of every list.
func relisting(change func(*metav1.ListOptions)) func(*faulty, *ListerWatcherRig) {
	return func(f *faulty, _ *ListerWatcherRig) {
		f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			change(&o)
			return f.Source.ListWithContext(ctx, o)
		}
	}
}

// ahead reports whether a version is one that the checks of future versions request.
func ahead(version string) bool { return len(version) > 10 }

var refusalFaults = map[string]sourceFault{
	"objects without a mark": {
		check: "Mark reads the mark of a listed object", says: "no mark was found in the listed object: set ListerWatcherConfig.Mark",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) { l.Items[0].SetAnnotations(nil) })
		},
	},
	"the present list at a version that is not reached": {
		check: "a version that is not reached is refused", says: "is of version 1: a reflector would regress",
		wrong: relisting(func(o *metav1.ListOptions) { o.ResourceVersion = "" }),
	},
	"an internal error at a version that is not reached": {
		check: "a version that is not reached is refused", says: "neither 504 with ResourceVersionTooLarge nor 410",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := f.Source.ListWithContext(ctx, o)
				if err != nil {
					return nil, cachetest.ErrInternal()
				}
				return list, nil
			}
		},
	},
	"a watch from now in place of a version that is not reached": {
		check: "a version that is not reached is refused", says: "nor silent: expecting no event: the event MODIFIED a=2 is of version 2, which is behind",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) { o.ResourceVersion = f.ResourceVersion() }),
	},
	"a watch from a version that is not reached is an internal error": {
		check: "a version that is not reached is refused", says: "nor silent: Watch: ",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if ahead(o.ResourceVersion) {
					return nil, cachetest.ErrInternal()
				}
				return f.Source.WatchWithContext(ctx, o)
			}
		},
	},
	"a selector that lists ignore": {
		check: "a label selector is refused or obeyed", says: "which no object matches, has [\"a=1\"]",
		wrong: relisting(func(o *metav1.ListOptions) { o.LabelSelector = "" }),
	},
	"a selector that watches ignore": {
		check: "a label selector is refused or obeyed", says: "which no object matches, delivers MODIFIED a=2",
		wrong: reopening(func(_ *faulty, o *metav1.ListOptions) { o.LabelSelector = "" }),
	},
	"sendInitialEvents ignored": {
		check: "sendInitialEvents is refused or obeyed", says: "neither refused nor a streaming list: in a streaming list: the bookmark",
		options: cachetest.Options{WatchListUnsupported: true},
		wrong: reopening(func(_ *faulty, o *metav1.ListOptions) {
			o.SendInitialEvents, o.ResourceVersionMatch = nil, ""
		}),
	},
	"initial events of nothing": {
		check: "sendInitialEvents is refused or obeyed", says: "neither refused nor a streaming list: the list has []",
		options: cachetest.Options{WatchListUnsupported: true},
		wrong: tampering(func(e watch.Event) []watch.Event {
			if e.Type == watch.Added {
				return nil
			}
			return only(e)
		}),
	},
}

func TestARefusedRequestIsRight(t *testing.T) {
	refused := func(options cachetest.Options) ListerWatcherConfig {
		return ListerWatcherConfig{Virtual: true, New: func(t testing.TB) ListerWatcherRig {
			source := newFaulty(t, options)
			source.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if o.LabelSelector != "" {
					return nil, cachetest.ErrInternal()
				}
				if ahead(o.ResourceVersion) {
					return nil, cachetest.ErrExpired()
				}
				return source.Source.ListWithContext(ctx, o)
			}
			source.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				if o.LabelSelector != "" {
					return nil, cachetest.ErrInternal()
				}
				return source.Source.WatchWithContext(ctx, o)
			}
			return RigOver(source.Source, "shop", source)
		}}
	}
	for name, options := range map[string]cachetest.Options{
		"watches": {WatchListUnsupported: true, NoWatchList: true, RefuseFutureWatches: true},
		"lists":   {WatchListUnsupported: true},
	} {
		t.Run(name, func(t *testing.T) { TestListerWatcher(t, refused(options)) })
	}
}

// The suite runs in another process, since it fails.
func TestASourceWithoutMarksFailsOnce(t *testing.T) {
	if flag.Arg(0) == "without-marks" {
		TestListerWatcher(t, ListerWatcherConfig{
			Virtual: true, Mark: func(runtime.Object) string { return "" },
			New: func(t testing.TB) ListerWatcherRig {
				return RigOver(newFaulty(t, cachetest.Options{}).Source, "shop", nil)
			},
		})
		return
	}
	output, err := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$", "without-marks").CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(string(output), "    --- FAIL: "), "%s", output)
	assert.Contains(t, string(output), "no mark was found in the listed object: set ListerWatcherConfig.Mark")
}
