package kubeapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// streamed returns the items of ListItems for this body, by name, with the version that was known
// then.
func streamed(
	t *testing.T, body string, options Options,
) (names, versions []string, list metav1.ListMeta, err error) {
	t.Helper()
	source := newSourceOf(t, respondWith(200, body), options)
	list, err = source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(list metav1.ListMeta, item runtime.Object) error {
			names = append(names, nameOf(t, item))
			versions = append(versions, list.ResourceVersion)
			return nil
		},
	)
	return names, versions, list, err
}

func nameOf(t *testing.T, item runtime.Object) string {
	t.Helper()
	require.Implements(t, (*metav1.Object)(nil), item)
	name := item.(metav1.Object).GetName()
	if bad, ok := item.(*UndecodableObject); ok {
		require.Error(t, bad.DecodeError())
		name = "undecoded " + name
	}
	return name
}

func TestItemsArePassedOneByOneWithTheListsMetadataSoFar(t *testing.T) {
	names, versions, list, err := streamed(t, podList(podJSON("a", 1), podJSON("b", 2)), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	require.Equal(t, []string{"7", "7"}, versions)
	require.Equal(t, "7", list.ResourceVersion)

	// Custom resources arrive like this, with fields in alphabetical order.
	_, versions, list, err = streamed(
		t,
		`{"apiVersion":"x/v1","items":[{"kind":"X","metadata":{"name":"a"}}],"kind":"XList","metadata":{"resourceVersion":"9"}}`,
		Options{})
	require.NoError(t, err)
	require.Equal(t, []string{""}, versions)
	require.Equal(t, "9", list.ResourceVersion)
}

func TestAnErrorOfTakeEndsTheListAndIsReturnedUnchanged(t *testing.T) {
	full := errors.New("full")
	source := newSource(t, respondWith(200, podList(podJSON("a", 1), podJSON("b", 2))))
	items := 0
	_, err := source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(metav1.ListMeta, runtime.Object) error {
			items++
			return full
		},
	)
	require.Equal(t, full, err)
	require.Equal(t, 1, items)
}

func TestABadItemHasItsReadableMetadataAndAffectsNoOther(t *testing.T) {
	bad := map[string]struct {
		item, name, text string
		// soon: a watch passes it on at once, since it would arrive again unchanged.
		soon bool
	}{
		"null":     {`null`, "", "item 2 of the list", false},
		"a string": {`"a"`, "", "", false},
		"a number beyond floats": {
			`{"metadata":{"name":"bad","namespace":"n","resourceVersion":"5","uid":"u"},"a":1e999}`,
			"bad", "1e999", false,
		},
		"a broken literal": {
			`{"spec":{"a":nul},"metadata":{"name":"bad","namespace":"n","resourceVersion":"5","uid":"u"}}`,
			"bad", "", false,
		},
		"too deep": {
			`{"a":` + strings.Repeat(
				`[`, 1000) + strings.Repeat(
				`]`, 1000) + `,"metadata":{"name":"bad"}}`,
			"bad", "1000 in Nesting", true,
		},
	}
	for what, test := range bad {
		t.Run(what, func(t *testing.T) {
			body := podList(podJSON("a", 1), test.item, podJSON("b", 2))
			names, _, _, err := streamed(t, body, Options{})
			require.NoError(t, err)
			require.Equal(t, []string{"a", "undecoded " + test.name, "b"}, names)

			undecoded := listed(t, body).Items[1].(*UndecodableObject)
			require.ErrorContains(t, undecoded.DecodeError(), test.text)
			if test.name != "" && undecoded.Namespace != "" {
				require.Equal(t, "n", undecoded.Namespace)
				require.Equal(t, "5", undecoded.ResourceVersion)
				require.EqualValues(t, "u", undecoded.UID)
			}

			body = frameJSON("ADDED", podJSON("a", 1)) +
				frameJSON(
					"MODIFIED", strings.Replace(test.item, "null", `5`, 1),
				) + frameJSON("ADDED", podJSON("b", 2))
			source := newSource(t, respondWith(200, body))
			if !test.soon {
				require.Equal(
					t, []watch.EventType{watch.Added, watch.Error}, types(delivered(t, source)),
					"it may have been damaged on the way")
			}
			events := delivered(t, source)
			require.Equal(
				t, []watch.EventType{watch.Added, watch.Modified, watch.Added}, types(events))
			require.Equal(t, "undecoded "+test.name, nameOf(t, events[1].Object))
			require.Equal(t, "b", nameOf(t, events[2].Object))
		})
	}
}

func TestAnUndecodedObjectCanBeCopied(t *testing.T) {
	object := &UndecodableObject{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Err: ErrMalformed}
	require.Equal(t, object, object.DeepCopyObject())
	require.NotSame(t, object, object.DeepCopyObject())
	require.Nil(t, (*UndecodableObject)(nil).DeepCopyObject())
}

func TestNoMoreObjectsOfOneListAreAcceptedThanItsLimit(t *testing.T) {
	three := podList(podJSON("a", 1), podJSON("b", 2), podJSON("c", 3))
	names, _, _, err := streamed(t, three, Options{Limits: Limits{Objects: 3}})
	require.NoError(t, err)
	require.Len(t, names, 3)

	names, _, _, err = streamed(t, three, Options{Limits: Limits{Objects: 2}})
	require.ErrorIs(t, err, ErrTooLarge)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, LimitError{Limit: "Objects", Value: 2}, *limit)
	require.Equal(t, []string{"a", "b"}, names, "nothing beyond it")
}

func TestItemsWithoutAKindWaitForThatOfTheirListInOrder(t *testing.T) {
	const bare, own = `{"metadata":{"name":"a"}}`, `{"apiVersion":"y/v1","kind":"Own","metadata":{"name":"b"}}`
	for name, test := range map[string]struct{ body, version string }{
		"kind and version last": {
			`{"items":[` + bare + `,` + own + `],"kind":"WidgetList","apiVersion":"x/v1"}`, "x/v1",
		},
		"version last": {`{"kind":"WidgetList","items":[` + bare + `,` + own + `],"apiVersion":"x/v1"}`, "v1"}, // as requested
		"both first": {
			`{"kind":"WidgetList","apiVersion":"x/v1","items":[` + bare + `,` + own + `]}`, "x/v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := listed(t, test.body)
			require.Equal(t, test.version, item(t, list, 0).GetAPIVersion())
			require.Equal(t, "Widget", item(t, list, 0).GetKind())
			require.Equal(t, "Own", item(t, list, 1).GetKind())
		})
	}
	object := `{"metadata":{"name":"a"},"data":` + quoted(1000) + `}`
	body := `{"items":[` + strings.Repeat(object+",", 9) + object + `],"kind":"WidgetList"}`
	_, _, _, err := streamed(t, body, Options{Limits: Limits{ItemBytes: 5000}})
	require.ErrorIs(t, err, ErrTooLarge, "a whole list is not held")
}

// A name without its namespace identifies another object. Fails if such a name is passed on.
func TestAnUndecodedObjectIsNamedOnlyIfItsNamespaceIsKnown(t *testing.T) {
	const (
		unread = `{"metadata":{"name":"bad","namespace":5}}`
		absent = `{"metadata":{"name":"bad","labels":5}}`
		other  = `{"metadata":{"name":"bad","namespace":"b","labels":5}}`
		broken = `{"metadata":{"name":5,"namespace":5}}`
	)
	for what, test := range map[string]struct{ object, of, namespace, name string }{
		"unread, of all":       {unread, "", "", ""},
		"unread, of one":       {unread, "a", "a", "bad"},
		"absent, of all":       {absent, "", "", "bad"},
		"absent, of one":       {absent, "a", "a", "bad"},
		"another, of one":      {other, "a", "b", "bad"},
		"another, of all":      {other, "", "b", "bad"},
		"nothing read, of one": {broken, "a", "", ""},
		"nothing read, of all": {broken, "", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			item, event := first(
				t, Options{Namespace: test.of, ObjectType: &metav1.PartialObjectMetadata{}},
				podList(test.object), test.object)
			for _, object := range []runtime.Object{item, event} {
				require.IsType(t, &UndecodableObject{}, object)
				require.Equal(t, test.namespace, object.(*UndecodableObject).Namespace)
				require.Equal(t, test.name, object.(*UndecodableObject).Name)
			}
		})
	}
}
