package cachetest_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

const (
	exact        = metav1.ResourceVersionMatchExact
	notOlderThan = metav1.ResourceVersionMatchNotOlderThan
)

func TestListAnswersThePresentInOrderOfKeys(t *testing.T) {
	src := cachetest.NewSource(cachetest.Options{})
	apply(t, src, pod("b", "1"), pod("a", "2"), pod("", "z"), pod("a-b", "1"), pod("a", "1"))
	for _, version := range []string{"", "0", "3", "5"} {
		names, meta := list(t, src, metav1.ListOptions{ResourceVersion: version})
		require.Equal(t, []string{"z", "a/1", "a/2", "a-b/1", "b/1"}, names)
		require.Equal(t, "5", meta.GetResourceVersion())
		require.Empty(t, meta.GetContinue())
		require.Nil(t, meta.GetRemainingItemCount())
	}
}

func TestListExactAnswersAStateOfThePast(t *testing.T) {
	src := filled(t, cachetest.Options{})
	apply(t, src, pod("a", "1", "changed", "yes"))
	remove(t, src, "a", "2")
	apply(t, src, pod("a", "2"))
	for version, want := range map[string]string{
		"1": "a/1",
		"4": "a/1 a/2 a/3 b/1",
		"6": "a/1 a/3 b/1",
		"7": "a/1 a/2 a/3 b/1",
	} {
		names, meta := list(
			t, src, metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: exact})
		require.Equal(t, want, strings.Join(names, " "), version)
		require.Equal(t, version, meta.GetResourceVersion())
	}
	obj, err := src.List(metav1.ListOptions{ResourceVersion: "4", ResourceVersionMatch: exact})
	require.NoError(t, err)
	first := &obj.(*unstructured.UnstructuredList).Items[0]
	require.Equal(t, "1", first.GetResourceVersion())
	require.Empty(t, first.GetLabels())
}

func TestALimitWithAVersionAndNoMatchAsksForExactlyThatVersion(t *testing.T) {
	src := filled(t, cachetest.Options{})
	names, first := list(t, src, metav1.ListOptions{Limit: 1, ResourceVersion: "2"})
	require.Equal(t, []string{"a/1"}, names)
	require.Equal(t, "2", first.GetResourceVersion())
	require.Equal(t, int64(1), *first.GetRemainingItemCount())
	names, rest := list(t, src, metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
	require.Equal(t, []string{"a/2"}, names)
	require.Equal(t, "2", rest.GetResourceVersion())
	require.Empty(t, rest.GetContinue())

	for _, newest := range []metav1.ListOptions{
		{Limit: 1},
		{Limit: 1, ResourceVersion: "0"},
		{Limit: 1, ResourceVersion: "0", ResourceVersionMatch: notOlderThan},
		{Limit: 1, ResourceVersion: "2", ResourceVersionMatch: notOlderThan},
		{ResourceVersion: "2"},
	} {
		_, answered := list(t, src, newest)
		require.Equal(t, "4", answered.GetResourceVersion(), "%+v", newest)
	}

	src.Compact(3)
	_, err := src.List(metav1.ListOptions{Limit: 1, ResourceVersion: "2"})
	requireReason(t, metav1.StatusReasonExpired, err)
	_, answered := list(
		t, src,
		metav1.ListOptions{Limit: 1, ResourceVersion: "2", ResourceVersionMatch: notOlderThan})
	require.Equal(t, "4", answered.GetResourceVersion())
}

func TestListOfAVersionNotReachedIsTooLarge(t *testing.T) {
	src := filled(t, cachetest.Options{})
	for _, match := range []metav1.ResourceVersionMatch{"", exact, notOlderThan} {
		_, err := src.List(metav1.ListOptions{ResourceVersion: "5", ResourceVersionMatch: match})
		require.True(t, apierrors.IsTimeout(err))
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
		require.ErrorContains(t, err, "Too large resource version: 5, current: 4")
		seconds, suggested := apierrors.SuggestsClientDelay(err)
		require.True(t, suggested)
		require.Equal(t, 1, seconds)
	}
}

func TestListRefusesOptionsThatMakeNoSense(t *testing.T) {
	src := filled(t, cachetest.Options{})
	_, page := list(t, src, metav1.ListOptions{Limit: 1})
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, c := range map[string]struct {
		opts   metav1.ListOptions
		reason metav1.StatusReason
	}{
		"version is no number": {
			metav1.ListOptions{ResourceVersion: "x"}, metav1.StatusReasonBadRequest,
		},
		"version is negative": {
			metav1.ListOptions{ResourceVersion: "-1"}, metav1.StatusReasonBadRequest,
		},
		"exact without version": {
			metav1.ListOptions{ResourceVersionMatch: exact}, metav1.StatusReasonInvalid,
		},
		"newer without version": {
			metav1.ListOptions{ResourceVersionMatch: notOlderThan}, metav1.StatusReasonInvalid,
		},
		"exact zero": {
			metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: exact},
			metav1.StatusReasonInvalid,
		},
		"unknown match": {
			metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: "About"},
			metav1.StatusReasonInvalid,
		},
		"streaming": {
			metav1.ListOptions{SendInitialEvents: pointer(true)}, metav1.StatusReasonInvalid,
		},
		"continue with version": {
			metav1.ListOptions{Continue: page.GetContinue(), ResourceVersion: "4"},
			metav1.StatusReasonBadRequest,
		},
		"continue with match": {
			metav1.ListOptions{Continue: page.GetContinue(), ResourceVersionMatch: notOlderThan},
			metav1.StatusReasonInvalid,
		},
		"continue with both": {
			metav1.ListOptions{
				Continue:             page.GetContinue(),
				ResourceVersion:      "0",
				ResourceVersionMatch: notOlderThan,
			},
			metav1.StatusReasonInvalid,
		},
		"continue is no token": {
			metav1.ListOptions{Continue: "?"}, metav1.StatusReasonBadRequest,
		},
		"continue is no JSON": {
			metav1.ListOptions{Continue: encode("no")}, metav1.StatusReasonBadRequest,
		},
		"continue without a version": {
			metav1.ListOptions{Continue: encode("{}")}, metav1.StatusReasonBadRequest,
		},
		"continue in the future": {
			metav1.ListOptions{Continue: encode(`{"v":99,"p":2,"k":{"n":"x"}}`)},
			metav1.StatusReasonExpired,
		},
		"label selector": {
			metav1.ListOptions{LabelSelector: "a in"}, metav1.StatusReasonBadRequest,
		},
		"field selector": {
			metav1.ListOptions{FieldSelector: "a"}, metav1.StatusReasonBadRequest,
		},
	} {
		_, err := src.List(c.opts)
		requireReason(t, c.reason, err)
		require.NotEmpty(t, err.Error(), name)
	}
}

func TestPagesAreOneConsistentState(t *testing.T) {
	src := filled(t, cachetest.Options{})
	names, first := list(t, src, metav1.ListOptions{Limit: 2, ResourceVersion: "0"})
	require.Equal(t, []string{"a/1", "a/2"}, names)
	require.Equal(t, int64(2), *first.GetRemainingItemCount())
	remove(t, src, "a", "3")
	apply(t, src, pod("b", "0"))
	// Lists of other states in between must not affect the pages.
	for range 10 {
		src.Advance(1)
		_, _ = list(t, src, metav1.ListOptions{})
	}
	names, second := list(
		t, src, metav1.ListOptions{Limit: 1, Continue: first.GetContinue(), ResourceVersion: "0"})
	require.Equal(t, []string{"a/3"}, names)
	require.Equal(t, "4", second.GetResourceVersion())
	require.Equal(t, int64(1), *second.GetRemainingItemCount())
	names, third := list(t, src, metav1.ListOptions{Limit: 1, Continue: second.GetContinue()})
	require.Equal(t, []string{"b/1"}, names)
	require.Empty(t, third.GetContinue())
	require.Nil(t, third.GetRemainingItemCount())

	pages := []int{}
	for _, r := range src.Requests() {
		if r.Options.Limit > 0 {
			pages = append(pages, r.Page)
		}
	}
	require.Equal(t, []int{1, 2, 3}, pages)
}

func TestAnExpiredTokenCarriesOneForAnInconsistentContinuation(t *testing.T) {
	src := filled(t, cachetest.Options{})
	_, first := list(t, src, metav1.ListOptions{Limit: 1})
	remove(t, src, "a", "2")
	apply(t, src, pod("a", "4"))
	src.ExpireContinueTokens()
	_, err := src.List(metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	var status apierrors.APIStatus
	require.True(t, errors.As(err, &status))
	names, next := list(
		t, src, metav1.ListOptions{Limit: 1, Continue: status.Status().ListMeta.Continue})
	require.Equal(t, []string{"a/3"}, names)
	require.Equal(t, "6", next.GetResourceVersion())
	names, next = list(t, src, metav1.ListOptions{Continue: next.GetContinue()})
	require.Equal(t, []string{"a/4", "b/1"}, names)
	require.Equal(t, "6", next.GetResourceVersion(), "from there on one state again")
}

func TestIgnoreLimitAtZeroAnswersOnePiece(t *testing.T) {
	src := filled(t, cachetest.Options{IgnoreLimitAtZero: true})
	names, _ := list(t, src, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	require.Len(t, names, 4)
	names, page := list(t, src, metav1.ListOptions{Limit: 1})
	require.Len(t, names, 1)
	names, _ = list(
		t, src, metav1.ListOptions{Limit: 1, ResourceVersion: "0", Continue: page.GetContinue()})
	require.Len(t, names, 1)
}

func TestNamespaceViewsShowOneNamespace(t *testing.T) {
	src := filled(t, cachetest.Options{})
	apply(t, src, pod("", "node"))
	names, page := list(t, src.Namespace("a"), metav1.ListOptions{Limit: 2})
	require.Equal(t, []string{"a/1", "a/2"}, names)
	require.Equal(t, int64(1), *page.GetRemainingItemCount())
	names, _ = list(t, src.Namespace("a"), metav1.ListOptions{Continue: page.GetContinue()})
	require.Equal(t, []string{"a/3"}, names)
	names, _ = list(t, src.Namespace("b"), metav1.ListOptions{Continue: page.GetContinue()})
	require.Equal(t, []string{"b/1"}, names)
	names, _ = list(t, src.Namespace("0"), metav1.ListOptions{Continue: page.GetContinue()})
	require.Empty(t, names)
	names, _ = list(t, src.Namespace(""), metav1.ListOptions{})
	require.Len(t, names, 5)
	obj, err := src.Namespace("c").ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Zero(t, meta.LenList(obj))
	require.Equal(t, "c", src.Requests()[5].Namespace)
	require.False(t, src.Namespace("a").IsWatchListSemanticsUnSupported())
}

func TestAViewFailsAlone(t *testing.T) {
	src := cachetest.NewTestSource(t, cachetest.Options{})
	apply(t, src, pod("a", "1"), pod("b", "1"))
	shut := src.Namespace("a")
	shut.FailRequests(1, nil)
	shut.FailRequests(cachetest.Forever, errTest)
	src.FailLists(1, cachetest.ErrExpired())
	_, err := src.Namespace("a").List(metav1.ListOptions{})
	require.Equal(t, cachetest.ErrInternal().Error(), err.Error())
	for range 2 {
		_, err = shut.List(metav1.ListOptions{})
		require.ErrorIs(t, err, errTest)
		_, err = shut.Watch(metav1.ListOptions{ResourceVersion: "1"})
		require.ErrorIs(t, err, errTest)
	}
	_, err = src.Namespace("b").List(metav1.ListOptions{})
	require.Error(t, err, "the source's own script is for all views")
	names, _ := list(t, src.Namespace("b"), metav1.ListOptions{})
	require.Equal(t, []string{"b/1"}, names)
	names, _ = list(t, src, metav1.ListOptions{})
	require.Len(t, names, 2)
	src.Namespace("a").Heal()
	names, _ = list(t, shut, metav1.ListOptions{})
	require.Equal(t, []string{"a/1"}, names)
	shut.FailRequests(cachetest.Forever, errTest)
	_, err = shut.List(metav1.ListOptions{})
	require.ErrorIs(t, err, errTest)
	src.Heal()
	list(t, shut, metav1.ListOptions{})
}

func TestSelectorsSelect(t *testing.T) {
	src := cachetest.NewSource(cachetest.Options{})
	busy := pod("a", "busy", "app", "web")
	require.NoError(t, unstructured.SetNestedField(busy.Object, int64(3), "spec", "size"))
	require.NoError(t, unstructured.SetNestedField(busy.Object, "n1", "spec", "nodeName"))
	apply(t, src, busy, pod("a", "idle", "app", "web"), pod("b", "other", "app", "db"))
	for _, c := range []struct{ labels, fields, want string }{
		{"app=web", "", "a/busy a/idle"},
		{"app!=web", "", "b/other"},
		{"", "metadata.name=idle", "a/idle"},
		{"", "metadata.namespace!=a", "b/other"},
		{"", "spec.nodeName=n1", "a/busy"},
		{"", "spec.nodeName=", "a/idle b/other"},
		{"", "spec.size=3", "a/busy"},
		{"app=web", "spec.nodeName!=n1", "a/idle"},
		{"app=none", "", ""},
	} {
		names, _ := list(
			t, src, metav1.ListOptions{LabelSelector: c.labels, FieldSelector: c.fields})
		require.Equal(t, c.want, strings.Join(names, " "), "%+v", c)
	}
	names, page := list(t, src, metav1.ListOptions{LabelSelector: "app=web", Limit: 1})
	require.Equal(t, []string{"a/busy"}, names)
	require.Nil(t, page.GetRemainingItemCount())
	names, page = list(
		t, src,
		metav1.ListOptions{LabelSelector: "app=web", Limit: 1, Continue: page.GetContinue()},
	)
	require.Equal(t, []string{"a/idle"}, names)
	require.Empty(t, page.GetContinue(), "no page is announced that would be empty")
}

func TestTypedObjectsCanOnlyBeSelectedByKnownFields(t *testing.T) {
	options := cachetest.Options{NewList: newWidgetList}
	src := cachetest.NewSource(options)
	_, err := src.List(metav1.ListOptions{FieldSelector: "size=2"})
	requireReason(t, metav1.StatusReasonBadRequest, err)
	apply(t, src, newWidget("a", "1", 1))
	names, _ := list(
		t, src, metav1.ListOptions{FieldSelector: "metadata.namespace=a,metadata.name=1"})
	require.Equal(t, []string{"a/1"}, names)

	options.FieldValue = func(obj runtime.Object, path string) (string, bool) {
		return strings.Repeat("x", obj.(*widget).Size), path == "bar"
	}
	src = cachetest.NewSource(options)
	apply(t, src, newWidget("a", "1", 1), newWidget("a", "2", 2))
	names, _ = list(t, src, metav1.ListOptions{FieldSelector: "bar=xx"})
	require.Equal(t, []string{"a/2"}, names)
	_, err = src.List(metav1.ListOptions{FieldSelector: "baz=xx"})
	require.ErrorContains(t, err, "baz")
}

func TestListsHaveTheTypeThatFitsTheObjects(t *testing.T) {
	answer := func(options cachetest.Options, objs ...runtime.Object) runtime.Object {
		src := cachetest.NewSource(options)
		apply(t, src, objs...)
		obj, err := src.List(metav1.ListOptions{})
		require.NoError(t, err)
		items, err := meta.ExtractListWithAlloc(obj)
		require.NoError(t, err)
		require.Len(t, items, len(objs))
		for i := range items {
			require.IsType(t, objs[i], items[i])
		}
		return obj
	}
	kindOf := func(obj runtime.Object) schema.GroupVersionKind { return obj.GetObjectKind().GroupVersionKind() }

	empty := answer(cachetest.Options{})
	require.IsType(t, &unstructured.UnstructuredList{}, empty)
	require.Equal(t, "List", kindOf(empty).Kind)
	require.Equal(t, "PodList", kindOf(answer(cachetest.Options{GroupVersionKind: podKind})).Kind)
	require.Equal(t, "PodList", kindOf(answer(cachetest.Options{}, pod("a", "1"))).Kind)

	require.IsType(t, &widgetList{}, answer(cachetest.Options{NewList: newWidgetList}))
	require.IsType(
		t, &widgetList{}, answer(cachetest.Options{NewList: newWidgetList}, newWidget("a", "1", 1)))
	require.IsType(t, &metav1.List{}, answer(cachetest.Options{}, newWidget("a", "1", 1)))
	require.IsType(
		t, &metav1.List{}, answer(cachetest.Options{}, newWidget("a", "1", 1), pod("b", "1")))
	require.IsType(
		t, &metav1.List{},
		answer(cachetest.Options{NewObject: func() runtime.Object { return &widget{} }}))
	require.IsType(
		t,
		&metav1.PartialObjectMetadataList{},
		answer(
			cachetest.Options{},
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "1"}}),
	)
}

func TestAListThatCannotHoldTheObjectsIsAnInternalError(t *testing.T) {
	src := cachetest.NewSource(cachetest.Options{NewList: newWidgetList})
	apply(t, src, pod("a", "1"))
	_, err := src.List(metav1.ListOptions{})
	requireReason(t, metav1.StatusReasonInternalError, err)
	require.Equal(t, err, src.Requests()[0].Err)

	notAList := func() runtime.Object { return &bag{} }
	src = cachetest.NewSource(
		cachetest.Options{NewList: notAList, NewObject: func() runtime.Object { return &widget{} }})
	_, err = src.List(metav1.ListOptions{})
	requireReason(t, metav1.StatusReasonInternalError, err)
}

// bag has items but no metadata.
type bag struct {
	metav1.TypeMeta
	Items []widget
}

func (b *bag) DeepCopyObject() runtime.Object { c := *b; return &c }
