package conformance

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

var watchFaults = map[string]sourceFault{
	"a buffer that drops what does not fit": {
		check: "a watch that is read late loses nothing", says: "a watch that was read after 1098 changes delivers",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				return dropping(inner, 100), nil
			}
		},
	},
	"a buffer that drops the updates that do not fit": {
		check: "a watch that is read late loses nothing", says: "would miss it for good",
		wrong: droppingOnly(watch.Modified),
	},
	"a buffer that drops the deletions that do not fit": {
		check: "a watch that is read late loses nothing", says: "would miss it for good",
		wrong: droppingOnly(watch.Deleted),
	},
	"a watch that drops what was not read for a minute": {
		check: "a watch that is read late loses nothing", says: "would miss it for good",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				return droppingAfter(inner, time.Minute), nil
			}
		},
	},
	"a buffer that drops the oldest": {
		check: "a watch that is read late loses nothing", says: "instead of ADDED late-0=1",
		wrong: tampering(func(e watch.Event) []watch.Event {
			if metadata(e.Object).GetName() == "late-0" {
				return nil
			}
			return only(e)
		}),
	},
	"a list whose version is newer than its content": {
		check: "a list made during changes has those up to its version", says: "would miss what changed in between",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				list, err := f.Source.ListWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				time.Sleep(time.Millisecond)
				newest, err := f.Source.ListWithContext(ctx, o)
				if err == nil {
					version := newest.(*unstructured.UnstructuredList).GetResourceVersion()
					list.(*unstructured.UnstructuredList).SetResourceVersion(version)
				}
				return list, err
			}
		},
	},
	"items that are older than the version of ListItems": {
		check: "a list made during changes has those up to its version", says: "would miss what changed in between",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.items = func(list runtime.Object, take func(runtime.Object) error) error {
				version := list.(*unstructured.UnstructuredList).GetResourceVersion()
				before, err := f.Source.ListWithContext(context.Background(), metav1.ListOptions{
					ResourceVersion:      plus(version, -1),
					ResourceVersionMatch: metav1.ResourceVersionMatchExact,
				})
				if err != nil {
					return err
				}
				return inOrder(before, take)
			}
		},
	},
	"initial events that are older than the bookmark after them": {
		check: "a list made during changes has those up to its version", says: "would miss what changed in between",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.tamper = func(e watch.Event) []watch.Event {
				if e.Type == watch.Bookmark {
					time.Sleep(time.Millisecond)
					e.Object = edited(e.Object, func(u *unstructured.Unstructured) {
						u.SetResourceVersion(f.ResourceVersion())
					})
				}
				return only(e)
			}
		},
	},
	"a list ahead of its watch, which sends only bookmarks": {
		check: "a watch resumes after a bookmark", says: "would miss MODIFIED a=2",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) {
				l.SetResourceVersion(plus(l.GetResourceVersion(), +1))
			})
		},
	},
	"a selector that forgets in a later watch what it had selected": {
		check: "an object that leaves a label selector is deleted", says: "in a watch opened after the changes",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				opened := f.ResourceVersion()
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				return f.tampered(inner, func(e watch.Event) []watch.Event {
					version := metadata(e.Object).GetResourceVersion()
					if e.Type == watch.Deleted && !behind(opened, version) {
						return nil
					}
					return only(e)
				}), nil
			}
		},
	},
	"a selector that looks at the new state alone": {
		check: "an object that leaves a label selector is deleted", says: "would miss DELETED a",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				selector, err := labels.Parse(o.LabelSelector)
				if err != nil {
					return nil, err
				}
				o.LabelSelector = ""
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				return f.tampered(inner, func(e watch.Event) []watch.Event {
					if !selector.Matches(labels.Set(metadata(e.Object).GetLabels())) {
						return nil
					}
					if metadata(e.Object).GetName() == "b" && metadata(e.Object).GetAnnotations()[MarkAnnotation] == "1" {
						e.Type = watch.Added
					}
					return only(e)
				}), nil
			}
		},
	},
	"a watch that begins now": {
		check: "a watch continues where the list ended", says: "would miss MODIFIED a=2, ADDED c=1",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) { o.ResourceVersion = f.ResourceVersion() }),
	},
	"a watch that begins with the content": {
		check: "a watch delivers changes in their order", says: "behind 2",
		wrong: reopening(func(_ *faulty, o *metav1.ListOptions) { o.ResourceVersion = "0" }),
	},
	"no type of event but one": {
		check: "a watch delivers changes in their order", says: "the watch delivers MODIFIED c=1 instead of ADDED c=1",
		wrong: tampering(func(e watch.Event) []watch.Event { e.Type = watch.Modified; return only(e) }),
	},
	"an unknown type of event": {
		check: "a watch delivers changes in their order", says: "does not know and skips",
		wrong: tampering(func(e watch.Event) []watch.Event { e.Type = "CHANGED"; return only(e) }),
	},
	"events without an object": {
		check: "a watch delivers changes in their order", says: "the object is nil",
		wrong: tampering(func(e watch.Event) []watch.Event { e.Object = nil; return only(e) }),
	},
	"events without a version": {
		check: "a watch delivers changes in their order", says: "no resource version",
		wrong: tampering(func(e watch.Event) []watch.Event {
			e.Object = edited(e.Object, func(u *unstructured.Unstructured) { u.SetResourceVersion("") })
			return only(e)
		}),
	},
	"events that come twice": {
		check: "a watch delivers changes in their order", says: "resumed between the two",
		wrong: tampering(func(e watch.Event) []watch.Event { return []watch.Event{e, e} }),
	},
	"a watch that has another channel each time": {
		check: "a watch delivers changes in their order", says: "another channel",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := f.Source.WatchWithContext(ctx, o)
				return rechanneled{w}, err
			}
		},
	},
	"a watch and an error": {
		check: "a watch delivers changes in their order", says: "never stops the watch",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, _ := f.Source.WatchWithContext(ctx, o)
				return w, errors.New("half open")
			}
		},
	},
	"neither a watch nor an error": {
		check: "a watch delivers changes in their order", says: "neither a watch nor an error",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, nil }
		},
	},
	"the event of the version asked for comes again": {
		check: "a watch resumes after any event", says: "from the version of the event",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) {
			if o.ResourceVersion != "2" { // the list's
				o.ResourceVersion = plus(o.ResourceVersion, -1)
			}
		}),
	},
	"the event after the version asked for is left out": {
		check: "a watch resumes after any event", says: "from the version of the event MODIFIED a=2: the watch delivers ADDED b=2",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) {
			if o.ResourceVersion != "2" && o.ResourceVersion != f.ResourceVersion() {
				o.ResourceVersion = plus(o.ResourceVersion, +1)
			}
		}),
	},
	"a deletion at the version of the last change": {
		check: "a deletion delivers the last state at a version of its own", says: "of version 2 like what came before",
		wrong: editing(watch.Deleted, func(u *unstructured.Unstructured) { u.SetResourceVersion(plus(u.GetResourceVersion(), -1)) }),
	},
	"a deletion without the last state": {
		check: "a deletion delivers the last state at a version of its own", says: "DELETED a= instead of DELETED a=2",
		wrong: editing(watch.Deleted, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }),
	},
	"one UID for all": {
		check: "a re-created object has another UID", says: "would tell of an update (in virtual time",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			mangled(f, func(l *unstructured.UnstructuredList) { l.Items[0].SetUID("same") })
			f.tamper = func(e watch.Event) []watch.Event {
				e.Object = edited(e.Object, func(u *unstructured.Unstructured) { u.SetUID("same") })
				return only(e)
			}
		},
	},
	"events of another kind": {
		check: "events have the type of the list's items", says: "skips the other",
		wrong: tampering(func(e watch.Event) []watch.Event {
			e.Object = edited(e.Object, func(u *unstructured.Unstructured) { u.SetKind("Table") })
			return only(e)
		}),
	},
	"bookmarks that were not requested": {
		check: "bookmarks are sent only if allowed", says: "though none were allowed",
		wrong: reopening(func(_ *faulty, o *metav1.ListOptions) { o.AllowWatchBookmarks = true }),
	},
	"no bookmarks": {
		check: "a watch resumes after a bookmark", says: "or set NoBookmarks",
		wrong: reopening(func(_ *faulty, o *metav1.ListOptions) { o.AllowWatchBookmarks = false }),
	},
	"a bookmark that overtakes a change": {
		check: "a watch resumes after a bookmark", says: "of version 2 like what came before it",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.tamper = func(e watch.Event) []watch.Event {
				if e.Type != watch.Modified {
					return only(e)
				}
				early := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "2"}}}
				return []watch.Event{{Type: watch.Bookmark, Object: early}, e}
			}
		},
	},
	"a bookmark without a version": {
		check: "a watch resumes after a bookmark", says: "a bookmark is of version \"\"",
		wrong: editing(watch.Bookmark, func(u *unstructured.Unstructured) { u.SetResourceVersion("") }),
	},
	"a bookmark of another kind": {
		check: "a watch resumes after a bookmark", says: "skips the other",
		wrong: editing(watch.Bookmark, func(u *unstructured.Unstructured) { u.SetKind("Bookmark") }),
	},
	"a Stop for all watches": {
		check: "watches are independent of each other", says: "after another watch was stopped",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := f.Source.WatchWithContext(ctx, o)
				return stopping(w, f.CloseWatches), err
			}
		},
	},
	"watches that wait for each other": {
		check: "a watch that is not read delays no other", says: "beside a watch that is not read",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			turn := make(chan struct{}, 1)
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				w := &forwarded{Interface: inner, results: make(chan watch.Event), stop: inner.Stop}
				go func() {
					defer close(w.results)
					for event := range inner.ResultChan() {
						turn <- struct{}{} // kept while waiting for the reader: the fault
						select {
						case w.results <- event:
						case <-f.released:
						}
						<-turn
					}
				}()
				return w, nil
			}
		},
	},
	"a backend that waits for its watches": {
		check: "a watch that is not read delays no other", says: "the backend's update has not returned",
		wrong: func(f *faulty, rig *ListerWatcherRig) {
			update, room := rig.Update, make(chan struct{}, 100)
			rig.Update = func(name, mark string) error {
				select {
				case room <- struct{}{}:
				case <-f.released:
				}
				return update(name, mark)
			}
		},
	},
	"one object for all watches": {
		check: "objects are the caller's", says: "two watches were given the same object",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			shared := map[string]runtime.Object{}
			f.tamper = func(e watch.Event) []watch.Event {
				f.mu.Lock()
				defer f.mu.Unlock()
				version := metadata(e.Object).GetResourceVersion()
				if shared[version] == nil {
					shared[version] = e.Object
				}
				e.Object = shared[version]
				return only(e)
			}
		},
	},
	"lists of the source's own objects": {
		check: "objects are the caller's", says: "would change the source itself",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			var kept []unstructured.Unstructured
			mangled(f, func(l *unstructured.UnstructuredList) {
				if kept == nil {
					kept = l.Items
				}
				l.Items = kept
			})
		},
	},
	"an expired version without an answer": {
		check: "a watch from a compacted version is expired", says: "is silent",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) { o.ResourceVersion = f.ResourceVersion() }),
	},
	"an expired version answered with what there is": {
		check: "a watch from a compacted version is expired", says: "without what was forgotten",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) { o.ResourceVersion = "0" }),
	},
	"an expired version is a bad request": {
		check: "a watch from a compacted version is expired", says: "ask again instead of listing",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, errors.New(err.Error())
				}
				return w, nil
			}
		},
	},
	"a streaming list without its end": {
		check: "a streaming list is complete and ends in a bookmark", says: "does not come",
		wrong: func(f *faulty, _ *ListerWatcherRig) { f.WithholdInitialEventsEnd(1) },
	},
	"a streaming list that was promised": {
		check: "a streaming list is complete and ends in a bookmark", says: "the source says that it can stream",
		options: cachetest.Options{NoWatchList: true},
	},
	"a streaming list that lacks one": {
		check: "a streaming list is complete and ends in a bookmark", says: "a streaming list: the list has",
		wrong: tampering(func(e watch.Event) []watch.Event {
			if metadata(e.Object).GetName() == "a" {
				return nil
			}
			return only(e)
		}),
	},
	"a streaming list without its end where there is nothing": {
		check: "an empty streaming list ends too", says: "does not come",
		wrong: func(f *faulty, _ *ListerWatcherRig) { f.WithholdInitialEventsEnd(1) },
	},
}

// dropping returns a watch with a buffer that drops the events for which it has no room.
func dropping(inner watch.Interface, size int) watch.Interface {
	w := &forwarded{Interface: inner, results: make(chan watch.Event, size), stop: inner.Stop}
	go func() {
		defer close(w.results)
		for event := range inner.ResultChan() {
			select {
			case w.results <- event:
			default:
			}
		}
	}()
	return w
}

// droppingAfter returns a watch that drops an event that nobody reads within a time.
func droppingAfter(inner watch.Interface, wait time.Duration) watch.Interface {
	w := &forwarded{Interface: inner, results: make(chan watch.Event), stop: inner.Stop}
	go func() {
		defer close(w.results)
		for event := range inner.ResultChan() {
			select {
			case w.results <- event:
			case <-time.After(wait):
			}
		}
	}()
	return w
}

// droppingOnly makes a fault from the type of events for which a watch has a buffer, and which it
// drops if they do not fit.
func droppingOnly(dropped watch.EventType) func(*faulty, *ListerWatcherRig) {
	return func(f *faulty, _ *ListerWatcherRig) {
		f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			inner, err := f.Source.WatchWithContext(ctx, o)
			if err != nil {
				return nil, err
			}
			w := &forwarded{Interface: inner, results: make(chan watch.Event, 10), stop: inner.Stop}
			go func() {
				defer close(w.results)
				for event := range inner.ResultChan() {
					if event.Type == dropped && len(w.results) == cap(w.results) {
						continue
					}
					select {
					case w.results <- event:
					case <-f.released:
						return
					}
				}
			}()
			return w, nil
		}
	}
}
