package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
)

func listed(t *testing.T, body string) *internalversion.List {
	t.Helper()
	list, err := newSource(t, respondWith(200, body)).List(metav1.ListOptions{})
	require.NoError(t, err)
	require.IsType(t, &internalversion.List{}, list)
	return list.(*internalversion.List)
}

// item returns an object of an unstructured list.
func item(t *testing.T, list *internalversion.List, at int) *unstructured.Unstructured {
	t.Helper()
	require.IsType(t, &unstructured.Unstructured{}, list.Items[at])
	return list.Items[at].(*unstructured.Unstructured)
}

func TestListReturnsObjectsAndTheListsMetadata(t *testing.T) {
	list := listed(t, `{"kind":"PodList","apiVersion":"v1",
		"metadata":{"resourceVersion":"42","continue":"next","remainingItemCount":3},
		"items":[`+podJSON("a", 40)+`,`+podJSON("b", 41)+`]}`)
	require.Equal(t, "PodList", list.Kind)
	require.Equal(t, "42", list.GetResourceVersion())
	require.Equal(t, "next", list.GetContinue())
	require.EqualValues(t, 3, *list.GetRemainingItemCount())
	require.Len(t, list.Items, 2)
	require.Equal(t, "b", item(t, list, 1).GetName())
	require.Equal(t, "41", item(t, list, 1).GetResourceVersion())
}

func TestItemsGetApiVersionAndKindFromTheirList(t *testing.T) {
	const bare, own = `{"metadata":{"name":"a"}}`, `{"apiVersion":"x/v2","kind":"Own","metadata":{"name":"b"}}`
	for name, test := range map[string]struct{ body, apiVersion, kind string }{
		"kind first": {
			`{"apiVersion":"apps/v1","kind":"DeploymentList","items":[` + own + `,` + bare + `]}`,
			"apps/v1", "Deployment",
		},
		"kind last": {
			`{"items":[` + own + `,` + bare + `],"kind":"DeploymentList","apiVersion":"apps/v1"}`,
			"apps/v1", "Deployment",
		},
		"list of any kind": {
			`{"apiVersion":"v1","kind":"List","items":[` + own + `,` + bare + `]}`, "", "",
		},
		"list without kind": {`{"items":[` + own + `,` + bare + `]}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list := listed(t, test.body)
			require.Equal(t, "Own", item(t, list, 0).GetKind())
			require.Equal(t, "x/v2", item(t, list, 0).GetAPIVersion())
			require.Equal(t, test.kind, item(t, list, 1).GetKind())
			require.Equal(t, test.apiVersion, item(t, list, 1).GetAPIVersion())
		})
	}
}

// The result is compared with apimachinery's decoder, so that numbers, escapes and nesting are
// decoded as in other clients.
func TestListDecodesAsApimachineryDoes(t *testing.T) {
	body := `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1","remainingItemCount":9007199254740993},
		"extra":[1,{"deep":2.5}],"number":9007199254740993,"items":[
		{"spec":{"int":9007199254740993,"float":1.5,"exp":1e3,"negative":-1,"big":18446744073709551616,
		 "list":[1,2.5,"x",null,true,{"a":[]}],"text":"ü😀\u0000\\"},"metadata":{"name":"a"}},{}]}`
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode([]byte(body), nil, nil)
	require.NoError(t, err)
	want := decoded.(*unstructured.UnstructuredList)
	list := listed(t, body)
	require.Len(t, list.Items, len(want.Items))
	for i := range want.Items {
		require.Equal(t, &want.Items[i], list.Items[i])
	}
	require.Equal(t, want.GetRemainingItemCount(), list.GetRemainingItemCount())
}

func TestEmptyListsAreListsWithoutItems(t *testing.T) {
	for name, body := range map[string]string{
		"empty array": `{"kind":"PodList","items":[]}`,
		"null":        `{"kind":"PodList","items":null}`,
		"no items":    `{"kind":"PodList","metadata":{"resourceVersion":"7"}}`,
		"no kind":     `{"items":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			list := listed(t, body)
			require.NotNil(t, list.Items)
			require.Empty(t, list.Items)
		})
	}
}

func TestABodyThatIsNoListIsAnErrorThatNamesIt(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want error
		text string
	}{
		"Table": {
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[` + strings.Repeat(`{},`, 9),
			ErrNotList, "Table",
		},
		"single object": {
			`{"kind":"Pod","metadata":{"name":"a"}}`, ErrNotList, `"Pod"`,
		},
		"successful Status": {
			`{"kind":"Status","apiVersion":"v1","status":"Success"}`, ErrNotList, `"Status"`,
		},
		"array":                     {`[]`, ErrNotList, "neither a kind nor items"},
		"string":                    {`"items"`, ErrNotList, "neither a kind nor items"},
		"nothing":                   {``, io.ErrUnexpectedEOF, ""},
		"HTML":                      {`<html>`, ErrMalformed, "'<'"},
		"truncated at the start":    {`{`, io.ErrUnexpectedEOF, ""},
		"truncated before a value":  {`{"kind":`, io.ErrUnexpectedEOF, ""},
		"truncated before items":    {`{"items":`, io.ErrUnexpectedEOF, ""},
		"truncated between items":   {`{"items":[{},`, io.ErrUnexpectedEOF, ""},
		"truncated in an item":      {`{"items":[{},{"a":`, io.ErrUnexpectedEOF, ""},
		"truncated after the items": {`{"items":[{}]`, io.ErrUnexpectedEOF, ""},
		"two bodies":                {podList() + podList(), ErrMalformed, "continues"},
		"rubbish at the end":        {podList() + "}", ErrMalformed, ""},
		"comma at the end":          {`{"items":[{},]}`, ErrMalformed, ""},
		"comma at the start":        {`{,"items":[]}`, ErrMalformed, ""},
		"number as field name":      {`{1:2}`, ErrMalformed, ""},
		"items no array":            {`{"items":{}}`, ErrMalformed, "items is not an array"},
		"metadata no object": {
			`{"items":[],"metadata":"x"}`, ErrMalformed, "metadata is not an object",
		},
		"version a number": {
			`{"items":[],"metadata":{"resourceVersion":7}}`, ErrMalformed,
			"metadata.resourceVersion",
		},
		"continue a number": {
			`{"items":[],"metadata":{"continue":7}}`, ErrMalformed, "metadata.continue",
		},
		"item too large": {
			`{"items":[{},` + object(defaultItemBytes+1) + `]}`, ErrTooLarge,
			"16777216 in ItemBytes",
		},
		"token too large": {
			`{"items":[],"metadata":{"continue":` + quoted(defaultTokenBytes+3) + `}}`, ErrTooLarge,
			"65536 in TokenBytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := newSource(
				t, respondWith(200, test.body)).List(
				metav1.ListOptions{Continue: "secret"})
			require.Nil(t, list)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, `list "http://api.test/api/v1/pods": `)
			require.ErrorContains(t, err, test.text)
			require.NotContains(t, err.Error(), "secret")
			require.NotErrorIs(t, err, io.EOF, "that would be a good end")
		})
	}
}

func TestAListThatIsAFailureStatusWithCode200IsThatError(t *testing.T) {
	_, err := newSource(
		t, respondWith(200, statusJSON("410", "Expired", ""))).List(
		metav1.ListOptions{})
	require.True(t, apierrors.IsResourceExpired(err))
}

func TestListThatIsNotDeclaredAsJSONIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		contentType string
		fine        bool
	}{
		"JSON":            {"application/json", true},
		"with parameters": {"application/json; charset=utf-8", true},
		"upper case":      {"Application/JSON", true},
		"undeclared":      {"", true},
		"broken charset":  {"application/json; charset", true},
		"broken, of HTML": {"text/html; charset", false},
		"HTML":            {"text/html; charset=utf-8", false},
		"protobuf":        {"application/vnd.kubernetes.protobuf", false},
		"nonsense":        {"a/b/c", false},
	} {
		t.Run(name, func(t *testing.T) {
			closed := &closing{Reader: strings.NewReader(podList())}
			source := newSource(t, server(func(*http.Request) (*http.Response, error) {
				return newResponse(200, closed, "Content-Type", test.contentType), nil
			}))
			_, err := source.List(metav1.ListOptions{})
			require.True(t, closed.closed)
			if test.fine {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrContentType)
			require.ErrorContains(t, err, test.contentType)
			require.ErrorContains(t, err, "PodList", "how the answer begins")
		})
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestATruncatedListKeepsTheCause(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for _, begin := range []string{
		"", "{", podList()[:70], podList(podJSON("a", 1)), podList(podJSON("a", 1))[:120],
	} {
		body := io.NopCloser(io.MultiReader(strings.NewReader(begin), iotest.ErrReader(reset)))
		_, err := newSource(t, server(func(*http.Request) (*http.Response, error) {
			return newResponse(200, body), nil
		})).List(metav1.ListOptions{})
		require.ErrorIs(t, err, reset)
		_, ok := errors.AsType[*url.Error](err)
		require.True(t, ok)
	}
}

func TestListEndsAtOnceWithItsContext(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"before the headers": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, errors.New("whatever a transport says")
		},
		"in the body": func(*http.Request) (*http.Response, error) {
			body, writer := pipeBody()
			go func() { _, _ = io.WriteString(writer, podList()[:80]) }()
			return newResponse(200, body), nil
		},
		"in an error body": func(*http.Request) (*http.Response, error) {
			body, _ := pipeBody()
			return newResponse(500, body), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, server(answer))
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error)
				go func() {
					_, err := source.ListWithContext(ctx, metav1.ListOptions{})
					result <- err
				}()
				synctest.Wait()
				cancel()
				synctest.Wait()
				select {
				case err := <-result:
					require.ErrorIs(t, err, context.Canceled)
				default:
					t.Fatal("the list still runs")
				}
			})
		})
	}
}

func TestOneItemKeepsNothingElseOfItsListAlive(t *testing.T) {
	const items, size = 300, 100_000
	kept := func() k8sruntime.Object {
		var each []string
		for range items {
			each = append(each, `{"metadata":{"name":"a"},"data":`+quoted(size)+`}`)
		}
		list := listed(t, podList(append(each, podJSON("kept", 1))...))
		var last k8sruntime.Object
		require.NoError(
			t,
			meta.EachListItemWithAlloc(
				list, func(o k8sruntime.Object) error { last = o; return nil }),
		)
		return last
	}
	before := heapBytes()
	object := kept()
	require.Less(t, heapBytes()-before, int64(items*size/10))
	require.Equal(t, "kept", object.(*unstructured.Unstructured).GetName())
}
