package compat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	fake "k8s.io/client-go/tools/cache/testing"
)

// fakeSource is client-go's fake, marked as one that cannot stream its first
// state, as its fake clientsets are.
type fakeSource struct{ *fake.FakeControllerSource }

func (fakeSource) IsWatchListSemanticsUnSupported() bool { return true }

// recorder is a ReflectorStore, for either package, that remembers its
// calls.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, text)
}

func (r *recorder) Add(obj any) error    { r.note("add " + show(obj)); return nil }
func (r *recorder) Update(obj any) error { r.note("update " + show(obj)); return nil }
func (r *recorder) Delete(obj any) error { r.note("delete " + show(obj)); return nil }
func (r *recorder) Resync() error        { r.note("resync"); return nil }

func (r *recorder) Replace(objects []any, version string) error {
	r.note("replace " + strings.Join(shown(objects), " ") + " at " + version)
	return nil
}

func (r *recorder) UpdateResourceVersion(version string) { r.note("version " + version) }

// take returns what was noted since the last time.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// mirrored runs a script against a reflector of each package in virtual time.
func mirrored(t *testing.T, resync time.Duration, script func(*testing.T, fakeSource, *recorder, reflector)) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := fakeSource{fake.NewFakeControllerSource()}
				from.Add(at("x", ""))
				from.Add(at("y", ""))
				into := &recorder{}
				r := s.newReflector(from, &object{}, into, resync)
				ctx, cancel := context.WithCancel(t.Context())
				var run sync.WaitGroup
				run.Go(func() { r.RunWithContext(ctx) })
				defer func() {
					cancel()
					run.Wait()
					from.Shutdown()
				}()
				synctest.Wait()
				script(t, from, into, r)
			})
		})
	}
}

// TestAReflectorDoesToAStoreWhatClientGosDoes drives both with client-go's fake
// source: a list, events, a cut after which the changes that were missed are
// found by a list.
func TestAReflectorDoesToAStoreWhatClientGosDoes(t *testing.T) {
	mirrored(t, 0, func(t *testing.T, from fakeSource, into *recorder, r reflector) {
		require.Equal(t, []string{"replace ns/x@1 ns/y@2 at 2"}, into.take())
		require.Equal(t, "2", r.LastSyncResourceVersion())

		from.Add(at("z", ""))
		from.Modify(at("x", ""))
		from.Delete(at("y", ""))
		synctest.Wait()
		require.Equal(t, []string{
			"add ns/z@3", "version 3", "update ns/x@4", "version 4", "delete ns/y@5", "version 5",
		}, into.take())
		require.Equal(t, "5", r.LastSyncResourceVersion())

		// The cut forgets the history, so the watch from 5 is answered "expired"
		// as soon as something has happened since.
		from.ResetWatch()
		from.DeleteDropWatch(at("x", ""))
		from.ResetWatch()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Contains(t, into.take(), "replace ns/z@3 at 6")
		require.Equal(t, "6", r.LastSyncResourceVersion())

		from.Modify(at("z", ""))
		synctest.Wait()
		require.Equal(t, []string{"update ns/z@7", "version 7"}, into.take())
	})
}

func TestAResyncComesEveryPeriod(t *testing.T) {
	mirrored(t, time.Minute, func(t *testing.T, _ fakeSource, into *recorder, _ reflector) {
		into.take()
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, []string{"resync", "resync", "resync"}, into.take())
	})
}

func TestOfAWatchAnObjectOfAnotherTypeIsSkipped(t *testing.T) {
	mirrored(t, 0, func(t *testing.T, from fakeSource, into *recorder, r reflector) {
		into.take()
		from.Add(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Other", "metadata": map[string]any{"namespace": "ns", "name": "odd"},
		}})
		from.Add(at("z", ""))
		synctest.Wait()
		seen := slices.DeleteFunc(into.take(), func(line string) bool { return strings.HasPrefix(line, "version") })
		require.Equal(t, []string{"add ns/z@4"}, seen)
	})
}

// scripted is a source of functions that remembers what it was asked.
type scripted struct {
	mu    sync.Mutex
	lists []string
	fail  error
	watch func() (watch.Interface, error)
}

func (s *scripted) List(options metav1.ListOptions) (obj listObject, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = append(s.lists, options.ResourceVersion)
	if s.fail != nil {
		return nil, s.fail
	}
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
}

func (s *scripted) Watch(metav1.ListOptions) (watch.Interface, error) { return s.watch() }

func (s *scripted) IsWatchListSemanticsUnSupported() bool { return true }

// bookmarked is a recorder that takes bookmarks.
type bookmarked struct{ recorder }

func (b *bookmarked) Bookmark(version string) error { b.note("bookmark " + version); return nil }

// A watch may begin with what the list had: client-go passes on the version of such an event, which the store has by its Replace.
func TestAStoreReceivesTheListsVersionOnce(t *testing.T) {
	type noting interface {
		store
		take() []string
	}
	for name, row := range map[string]struct {
		into  func() noting
		event watch.Event
		want  []string
	}{
		"an event":                            {func() noting { return &recorder{} }, watch.Event{Type: watch.Modified, Object: at("x", "5")}, []string{"update ns/x@5", "version 5"}},
		"a bookmark":                          {func() noting { return &recorder{} }, watch.Event{Type: watch.Bookmark, Object: at("", "5")}, []string{"version 5"}},
		"an event, where there are bookmarks": {func() noting { return &bookmarked{} }, watch.Event{Type: watch.Deleted, Object: at("x", "5")}, []string{"delete ns/x@5", "version 5"}},
	} {
		for _, s := range sides {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := watch.NewFakeWithChanSize(3, false)
					into := row.into()
					r := s.newReflector(&scripted{watch: func() (watch.Interface, error) { return w, nil }}, &object{}, into, 0)
					ctx, cancel := context.WithCancel(t.Context())
					var run sync.WaitGroup
					run.Go(func() { r.RunWithContext(ctx) })
					synctest.Wait()
					require.Equal(t, []string{"replace  at 5"}, into.take())
					w.Action(row.event.Type, row.event.Object)
					synctest.Wait()
					want := row.want
					if s.name == "ours" {
						want = slices.DeleteFunc(slices.Clone(want), func(line string) bool { return line == "version 5" })
					}
					require.Equal(t, append([]string{}, want...), append([]string{}, into.take()...))
					w.Modify(at("x", "6"))
					synctest.Wait()
					require.Equal(t, []string{"update ns/x@6", "version 6"}, into.take())
					cancel()
					run.Wait()
				})
			})
		}
	}
}

// TestOneRoundEndsAndAnswersAsClientGos: ListAndWatch returns an error for a list
// that failed, nil for a stop and for a watch that failed, and keeps the version
// for the next round, which lists at it.
func TestOneRoundEndsAndAnswersAsClientGos(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := &scripted{fail: errors.New("boom")}
				r := s.newReflector(from, &object{}, &recorder{}, 0)
				require.ErrorContains(t, r.ListAndWatchWithContext(t.Context()), "boom")

				from.fail = nil
				from.watch = func() (watch.Interface, error) { return nil, errors.New("no watch") }
				require.ErrorContains(t, r.ListAndWatchWithContext(t.Context()), "no watch")
				require.Equal(t, "5", r.LastSyncResourceVersion())

				expired := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}
				from.watch = func() (watch.Interface, error) {
					w := watch.NewFakeWithChanSize(1, false)
					w.Error(expired)
					return w, nil
				}
				require.NoError(t, r.ListAndWatchWithContext(t.Context()), "the watch failed, not the round")

				from.watch = func() (watch.Interface, error) { return watch.NewFake(), nil }
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.NoError(t, r.ListAndWatchWithContext(ctx), "stopped")
				require.Equal(t, []string{"0", "0", "5", "5"}, from.lists)
			})
		})
	}
}

func TestAReflectorsDescriptionsAreClientGos(t *testing.T) {
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "g/v1", "kind": "Thing"}}
	cases := []struct {
		expected any
		want     string
	}{
		{nil, "<unspecified>"},
		{&object{}, "*v1.PartialObjectMetadata"},
		{&unstructured.Unstructured{}, "*unstructured.Unstructured"},
		{thing, "g/v1, Kind=Thing"},
	}
	for _, tc := range cases {
		for _, s := range sides {
			t.Run(tc.want+"/"+s.name, func(t *testing.T) {
				r := s.newReflector(&scripted{}, tc.expected, &recorder{}, 0)
				require.Equal(t, tc.want, r.TypeDescription())
				require.NotEmpty(t, r.Name())
			})
		}
	}
}
