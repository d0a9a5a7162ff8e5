package cache

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// foreign is a store of somebody else's: nothing but a ReflectorStore, and what a
// test embeds beside it. It writes down its calls.
type foreign struct{ calls []string }

func (f *foreign) note(call string, obj any) error {
	f.calls = append(f.calls, fmt.Sprintf("%s %s", call, nameOf(obj)))
	return nil
}

func (f *foreign) Add(obj any) error    { return f.note("add", obj) }
func (f *foreign) Update(obj any) error { return f.note("update", obj) }
func (f *foreign) Delete(obj any) error { return f.note("delete", obj) }
func (f *foreign) Resync() error        { return nil }
func (f *foreign) Replace(list []any, version string) error {
	call := "replace"
	for _, obj := range list {
		call += " " + nameOf(obj)
	}
	f.calls = append(f.calls, call+" @"+version)
	return nil
}

type updater struct{ foreign }

func (u *updater) UpdateResourceVersion(version string) {
	u.calls = append(u.calls, "version "+version)
}

type bookmarker struct{ foreign }

func (b *bookmarker) Bookmark(version string) error {
	b.calls = append(b.calls, "bookmark "+version)
	return nil
}

type both struct{ updater }

func (b *both) Bookmark(version string) error {
	b.calls = append(b.calls, "bookmark "+version)
	return nil
}

func (f *foreign) take() []string { calls := f.calls; f.calls = nil; return calls }

// S5, S6: a foreign store gets one Replace for a list, however it came, then each
// event; and it is told of each advance of the version once.
func TestAForeignStoreIsToldOfEachAdvanceOnce(t *testing.T) {
	type taker interface {
		ReflectorStore
		take() []string
	}
	for name, row := range map[string]struct {
		store    taker
		event    []string // what follows an event
		bookmark []string
	}{
		"neither":  {&foreign{}, nil, nil},
		"updater":  {&updater{}, []string{"version 5"}, []string{"version 7"}},
		"bookmark": {&bookmarker{}, nil, []string{"bookmark 7"}},
		"both":     {&both{}, []string{"version 5"}, []string{"bookmark 7"}},
	} {
		for _, strategy := range []ListStrategy{ListPaged, ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
					h := &heard{}
					stop := runReflector(t, NewReflectorWithOptions(source, &object{}, row.store,
						ReflectorOptions{PageSize: 2, Strategy: strategy, ErrorHandler: h.handle}))
					assert.Equal(t, []string{"replace a/1 a/2 a/3 @3"}, row.store.take())
					_, err := source.Update(labelled(pod("a", "1"), "x"))
					require.NoError(t, err)
					synctest.Wait()
					row.store.take()
					_, err = source.Delete("a", "2")
					require.NoError(t, err)
					synctest.Wait()
					assert.Equal(t, append([]string{"delete a/2"}, row.event...), row.store.take())
					source.Advance(2)
					source.SendBookmarks()
					source.SendBookmarks()
					synctest.Wait()
					assert.Equal(t, row.bookmark, row.store.take(), "a bookmark that says nothing new is not passed on")
					stop()
					assert.Empty(t, h.all())
					source.Close()
				})
			})
		}
	}
}

// A relist that a foreign store refuses is reported, and made again after a pause;
// the objects that it could not take are reported one by one and cause no list.
func TestAReplaceThatAForeignStoreRefusesIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := newSource(t, pod("a", "1")), &heard{}
		store := &replaceFails{errs: []error{errBoom, errors.Join(&ObjectError{Key: "a/9", Stage: StageIndex, Err: errBoom}, KeyError{pod("a", "8"), errBoom})}}
		stop := runReflector(t, NewReflectorWithOptions(source, &object{}, store, ReflectorOptions{Strategy: ListPaged, ErrorHandler: h.handle}))
		sleep(time.Minute)
		assert.Equal(t, []Cause{CauseStore, CauseObject, CauseObject}, h.causes())
		assert.Equal(t, 2, source.ListCalls())
		stop()
		source.Close()
	})
}

type replaceFails struct {
	foreign
	errs []error
}

func (r *replaceFails) Replace([]any, string) error {
	if len(r.errs) == 0 {
		return nil
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return err
}

func TestErrorsOfAForeignStoreAreToldApart(t *testing.T) {
	object := &ObjectError{Key: "k", Stage: StageIndex, Err: errBoom}
	key := KeyError{pod("a", "b"), errBoom}
	objects, other := splitObjectErrors(errors.Join(object, fmt.Errorf("wrapped: %w", key), errBoom))
	require.Len(t, objects, 2)
	assert.Equal(t, "k", objects[0].Key)
	assert.Equal(t, "a/b", objects[1].Key)
	assert.ErrorIs(t, other, errBoom)
	objects, other = splitObjectErrors(object)
	assert.Len(t, objects, 1)
	assert.NoError(t, other)
}

// What a store that is not ours is given for a deletion that could not be decoded.

// The error of a store that is not ours counts, also if another call would have
// succeeded. Fails if any error makes the reflector try again.
func TestAForeignStoresRefusalOfAnUndecodedDeletionIsNotSwallowed(t *testing.T) {
	store := &refusesOnce{errs: []error{errBoom}}
	assert.ErrorIs(t, deleteFrom(store, undecoded(podAt("a", "1", "6"))), errBoom)
	assert.Equal(t, 1, store.calls)
	store = &refusesOnce{errs: []error{KeyError{Err: errors.New("no tombstones")}, errBoom}}
	assert.ErrorIs(t, deleteFrom(store, undecoded(podAt("a", "1", "6"))), errBoom)
	assert.Equal(t, 2, store.calls)
}

type refusesOnce struct {
	foreign
	errs  []error
	calls int
}

func (r *refusesOnce) Delete(any) error {
	if r.calls++; r.calls > len(r.errs) {
		return nil
	}
	return r.errs[r.calls-1]
}
