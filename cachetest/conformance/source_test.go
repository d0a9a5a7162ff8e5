package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// sourceFault is a fault of a source and the check that must find it.
type sourceFault struct {
	check   string
	says    string // part of the check's error
	options cachetest.Options
	wrong   func(*faulty, *ListerWatcherRig)
}

func TestEachCheckOfASourceSeesItsFaults(t *testing.T) {
	checks := map[string]check[*sourceTrial]{}
	for _, c := range sourceChecks() {
		checks[c.name] = c
	}
	seen := map[string]bool{}
	for _, faults := range []map[string]sourceFault{listFaults, watchFaults, endFaults, refusalFaults} {
		for name, fault := range faults {
			seen[fault.check] = true
			t.Run(name, func(t *testing.T) {
				require.Contains(t, checks, fault.check)
				config := ListerWatcherConfig{
					Virtual: true,
					New: func(t testing.TB) ListerWatcherRig {
						source := newFaulty(t, fault.options)
						rig := RigOver(source.Source, "shop", source)
						if fault.wrong != nil {
							fault.wrong(source, &rig)
						}
						return rig
					},
				}
				lacking, err := runCheck(t, config.pace(), checks[fault.check], config.start)
				require.Empty(t, lacking)
				require.ErrorContains(t, err, fault.says)
			})
		}
	}
	for name := range checks {
		assert.True(t, seen[name], "no fault shows that this check can fail: %s", name)
	}
}

func TestTheSourceBehindTheFaultsIsGood(t *testing.T) {
	TestListerWatcher(t, ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) ListerWatcherRig {
			source := newFaulty(t, cachetest.Options{})
			source.tamper = only
			return RigOver(source.Source, "shop", source)
		},
	})
}

// mangled lists, and changes the list.
func mangled(f *faulty, change func(*unstructured.UnstructuredList)) {
	f.MangleList(func(list runtime.Object) runtime.Object {
		change(list.(*unstructured.UnstructuredList))
		return list
	})
}

var listFaults = map[string]sourceFault{
	"a list without a version": {
		check: "an empty list has a version", says: "where its watch begins",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) { l.SetResourceVersion("") })
		},
	},
	"a nil list": {
		check: "an empty list has a version", says: "neither a list nor an error",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return (*unstructured.UnstructuredList)(nil), nil
			}
		},
	},
	"an item twice": {
		check: "a list has a version and each object once", says: "in the list twice",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) { l.Items = append(l.Items, l.Items[0]) })
		},
	},
	"an item too few": {
		check: "a list has a version and each object once", says: "a reflector would make its store the former",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) { l.Items = l.Items[1:] })
		},
	},
	"an item without a version": {
		check: "a list has a version and each object once", says: "no resource version",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) { l.Items[0].SetResourceVersion("") })
		},
	},
	"a part of the list for all of it": {
		check: "a list has a version and each object once", says: "continue token",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.Limit = 1
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
	"the same list forever": {
		check: "a list is no older than the last write and the requested version", says: "the list has [\"a=1\" \"b=1\"]",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			var first runtime.Object
			f.list = func(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
				if first == nil {
					first, err = f.Source.ListWithContext(ctx, o)
				}
				return first, err
			}
		},
	},
	"an old list at a version": {
		check: "a list is no older than the last write and the requested version", says: "would regress",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if len(o.ResourceVersion) > 0 && o.ResourceVersion != "0" {
					o.ResourceVersion, o.ResourceVersionMatch = "2", metav1.ResourceVersionMatchExact
				}
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
	"an old list at 0 with the version of the present one": {
		check: "a list is no older than the last write and the requested version", says: "at resource version 0, after changes",
		wrong: claimingTheVersion(func(o metav1.ListOptions) bool { return o.ResourceVersion == "0" }),
	},
	"an old list at an old version with the version of the present one": {
		check: "a list is no older than the last write and the requested version", says: "at resource version 2, after changes",
		wrong: claimingTheVersion(func(o metav1.ListOptions) bool { return o.ResourceVersion == "2" }),
	},
	"another version without a context": {
		check: "a list without a context is equal", says: "though nothing has changed",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				f.Advance(1)
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
	"pages that are older than their version": {
		check: "a list made during changes has those up to its version", says: "the version was newer than the list",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			version := ""
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := f.Source.ListWithContext(ctx, o)
				if err != nil || o.Limit == 0 {
					return list, err
				}
				if o.Continue == "" {
					time.Sleep(time.Millisecond) // changes come before the version is read
					version = f.ResourceVersion()
				}
				list.(*unstructured.UnstructuredList).SetResourceVersion(version)
				return list, nil
			}
		},
	},
	"a UID that each list makes anew": {
		check: "an object keeps its UID, and its version until it changes", says: "would tell of a deletion and an addition",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			made := 0
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := f.Source.ListWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				items := list.(*unstructured.UnstructuredList).Items
				for at := range items {
					made++
					items[at].SetUID(types.UID(strconv.Itoa(made)))
				}
				return list, nil
			}
		},
	},
	"a UID that only events have": {
		check: "an object keeps its UID, and its version until it changes", says: "the UID of a=1 was",
		wrong: editing(watch.Modified, func(obj *unstructured.Unstructured) { obj.SetUID(obj.GetUID() + "-event") }),
	},
	"the version of the list in its items": {
		check: "an object keeps its UID, and its version until it changes", says: "though it has not changed",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := f.Source.ListWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				listed := list.(*unstructured.UnstructuredList)
				for at := range listed.Items {
					listed.Items[at].SetResourceVersion(listed.GetResourceVersion())
				}
				return list, nil
			}
		},
	},
	"pages of different states": {
		check: "pages make one consistent list", says: "would miss what changed in between",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if o.Continue == "" {
					return f.Source.ListWithContext(ctx, o)
				}
				list, err := f.Source.ListWithContext(ctx, metav1.ListOptions{})
				rest := list.(*unstructured.UnstructuredList)
				rest.Items = rest.Items[2:]
				return rest, err
			}
		},
	},
	"pages of different states at one version": {
		check: "pages make one consistent list", says: "in 2 pages",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if o.Continue == "" {
					return f.Source.ListWithContext(ctx, o)
				}
				list, err := f.Source.ListWithContext(ctx, metav1.ListOptions{})
				rest := list.(*unstructured.UnstructuredList)
				rest.Items = rest.Items[2:]
				rest.SetResourceVersion("5")
				return rest, err
			}
		},
	},
	"pages of a state that is not kept": {
		check: "pages make one consistent list", says: "must ignore the limit",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if o.Continue != "" {
					f.CompactAll()
				}
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
	"a token that leads to itself": {
		check: "pages make one consistent list", says: "list forever",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) {
				l.SetContinue("again")
				l.Items = nil
				l.SetResourceVersion("5")
			})
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.Continue = ""
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
	"items that lack the last": {
		check: "ListItems passes the items of the list", says: "compared with List",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.items = func(list runtime.Object, take func(runtime.Object) error) error {
				l := list.(*unstructured.UnstructuredList)
				l.Items = l.Items[:len(l.Items)-1]
				return inOrder(l, take)
			}
		},
	},
	"items given two at a time": {
		check: "ListItems passes the items of the list", says: "while an earlier call was running",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.items = func(list runtime.Object, take func(runtime.Object) error) error {
				errs := make(chan error)
				for range 200 {
					go func() { errs <- inOrder(list, take) }()
				}
				var err error
				for range 200 {
					err = errors.Join(err, <-errs)
				}
				return err
			}
		},
	},
	"a refused item is left out": {
		check: "an error of take ends ListItems", says: "a part of the list for all of it",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.items = func(list runtime.Object, take func(runtime.Object) error) error {
				return inOrder(list, func(item runtime.Object) error { _ = take(item); return nil })
			}
		},
	},
	"items go on after an error": {
		check: "an error of take ends ListItems", says: "called 1 times more",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.items = func(list runtime.Object, take func(runtime.Object) error) error {
				var first error
				_ = inOrder(list, func(item runtime.Object) error {
					if err := take(item); first == nil {
						first = err
					}
					return nil
				})
				return first
			}
		},
	},
	"an expired list that stays expired": {
		check: "a list is possible after expiry", says: "could not recover",
		wrong: func(f *faulty, rig *ListerWatcherRig) {
			var compacted atomic.Bool
			compact := rig.Compact
			rig.Compact = func() error {
				compacted.Store(true)
				return compact()
			}
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if compacted.Load() {
					return nil, cachetest.ErrExpired()
				}
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
	"an expired token is an internal error": {
		check: "a continue token of a compacted version is expired", says: "begin the list again",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := f.Source.ListWithContext(ctx, o)
				if apierrors.IsResourceExpired(err) {
					err = cachetest.ErrInternal()
				}
				return list, err
			}
		},
	},
	"an expired token continues with another state": {
		check: "a continue token of a compacted version is expired", says: "of no version at all",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.Continue = ""
				return f.Source.ListWithContext(ctx, o)
			}
		},
	},
}

// plus returns a version plus n.
func plus(version string, n int) string {
	number, err := strconv.Atoi(version)
	if err != nil {
		panic(fmt.Sprintf("version %q: %v", version, err))
	}
	return strconv.Itoa(number + n)
}

// tampering makes a fault from a function that changes events.
func tampering(tamper func(watch.Event) []watch.Event) func(*faulty, *ListerWatcherRig) {
	return func(f *faulty, _ *ListerWatcherRig) { f.tamper = tamper }
}

// editing makes a fault from a function that changes the objects of events of one type.
func editing(of watch.EventType, edit func(*unstructured.Unstructured)) func(*faulty, *ListerWatcherRig) {
	return tampering(func(e watch.Event) []watch.Event {
		if e.Type == of {
			e.Object = edited(e.Object, edit)
		}
		return only(e)
	})
}

// reopening makes a fault from a function that changes the options of every watch.
func reopening(change func(*faulty, *metav1.ListOptions)) func(*faulty, *ListerWatcherRig) {
	return func(f *faulty, _ *ListerWatcherRig) {
		f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			change(f, &o)
			return f.Source.WatchWithContext(ctx, o)
		}
	}
}

// claimingTheVersion makes the fault that some lists have the content of the first one and the
// version of the present one.
func claimingTheVersion(of func(metav1.ListOptions) bool) func(*faulty, *ListerWatcherRig) {
	return func(f *faulty, _ *ListerWatcherRig) {
		var first *unstructured.UnstructuredList
		f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := f.Source.ListWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			if first == nil {
				first = list.(*unstructured.UnstructuredList)
			}
			if !of(o) {
				return list, nil
			}
			old := first.DeepCopy()
			old.SetResourceVersion(list.(*unstructured.UnstructuredList).GetResourceVersion())
			return old, nil
		}
	}
}
