package compat

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// typedNotes is a typed handler that remembers.
func typedNotes(calls *listening) typedCalls {
	return typedCalls{
		add:    func(obj *object, initial bool) { calls.OnAdd(obj, initial) },
		update: func(older, newer *object) { calls.OnUpdate(older, newer) },
		deleted: func(key string, last *object, tombstone bool) {
			calls.note(fmt.Sprintf("delete %s, last %s, tombstone %t", key, show(last), tombstone))
		},
	}
}

func TestATypedHandlerIsNotifiedLikeClientGos(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls := &listening{}
		r, err := s.inf.typed().addTyped(typedNotes(calls), nil)
		require.NoError(s, err)
		s.start()
		require.ElementsMatch(s, []string{"add ns/x@1 (initial)", "add ns/y@2 (initial)"}, calls.take())
		require.True(s, r.HasSynced())

		s.apply(changed(at("x", ""), "new"))
		s.remove("x")
		require.Equal(s, []string{
			"update ns/x@1 to ns/x@3 new", "delete ns/x, last ns/x@4 new, tombstone false",
		}, calls.take())

		s.relists(func() {
			_, err := s.from.DeleteSilently("ns", "y")
			require.NoError(s, err)
		})
		require.Equal(s, []string{"delete ns/y, last ns/y@2, tombstone true"}, calls.take())
	})
}

func TestATypedIndexAnswersAsClientGos(t *testing.T) {
	played(t, informerOptions{indexes: map[string]indexFunc{}}, func(s *scene) {
		typed := s.inf.typed()
		require.NoError(s, typed.addTypedIndex("label", func(o *object) ([]string, error) { return []string{o.Labels["v"]}, nil }))
		s.start()
		s.apply(changed(at("x", ""), "new"))
		found, err := typed.byTypedIndex("label", "new")
		require.NoError(s, err)
		require.Len(s, found, 1)
		require.Equal(s, "ns/x@3 new", show(found[0]))
		_, err = typed.byTypedIndex("none", "")
		require.Error(s, err)
	})
}

// transitions drives an object into a filter's sight and out of it.
func transitions(s *scene, calls *listening) []string {
	s.start()
	s.apply(changed(at("x", ""), "red"))
	s.apply(changed(at("x", ""), "dark red"))
	s.apply(changed(at("x", ""), "blue"))
	s.apply(changed(at("y", ""), "red"))
	s.remove("x", "y")
	return calls.take()
}

func isRed(o *object) bool { return o.Labels["v"] == "red" || o.Labels["v"] == "dark red" }

func TestAFilteringHandlerIsNotifiedLikeClientGos(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls := &listening{}
		s.adds(s.side.filtering(func(obj any) bool {
			o, ok := obj.(*object)
			return ok && isRed(o)
		}, calls))
		require.Equal(s, []string{
			"add ns/x@3 red", "update ns/x@3 red to ns/x@4 dark red", "delete ns/x@4 dark red",
			"add ns/y@6 red", "delete ns/y@8 red",
		}, transitions(s, calls))
	})
}

func TestATypedFilteringHandlerIsNotifiedLikeClientGos(t *testing.T) {
	played(t, informerOptions{}, func(s *scene) {
		calls := &listening{}
		_, err := s.inf.typed().addTyped(typedNotes(calls), isRed)
		require.NoError(s, err)
		require.Equal(s, []string{
			"add ns/x@3 red", "update ns/x@3 red to ns/x@4 dark red",
			"delete ns/x, last ns/x@4 dark red, tombstone false",
			"add ns/y@6 red", "delete ns/y, last ns/y@8 red, tombstone false",
		}, transitions(s, calls))
	})
}
