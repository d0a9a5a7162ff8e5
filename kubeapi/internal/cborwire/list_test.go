package cborwire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

func TestListsOfAPIServersComeItemByItem(t *testing.T) {
	for _, n := range []int{0, 1, 30} {
		want := carps(n)
		var shuffled bytes.Buffer
		require.NoError(t, theirs(t).EncodeNondeterministic(want, &shuffled))
		bodies := map[string][]byte{"sorted": served(t, want), "shuffled": shuffled.Bytes()}
		for how, body := range bodies {
			t.Run(fmt.Sprint(n, " items, ", how), func(t *testing.T) {
				wiretest.RequireList(t, Encoding, body, want, roomy)
			})
		}
	}
}

func TestListsOfCustomResourcesComeItemByItem(t *testing.T) {
	want := &unstructured.UnstructuredList{
		Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": map[string]any{"resourceVersion": "42"},
		},
		Items: []unstructured.Unstructured{widget("a"), widget("b")},
	}
	got := readList(bytes.NewReader(served(t, want)), roomy)
	require.Equal(t, io.EOF, got.Err)
	require.Equal(t, "42", got.Header.ResourceVersion)
	require.Len(t, got.Items, 2)
	for i, raw := range got.Items {
		content, err := Encoding.Unstructured(raw, roomy)
		require.NoError(t, err)
		require.Equal(t, want.Items[i].Object, content)
	}
}

func TestHeaderGrowsAsTheListArrives(t *testing.T) {
	list := Encoding.List(bytes.NewReader(served(t, carps(1))), roomy)
	require.Empty(t, list.Header())
	_, err := list.Next()
	require.NoError(t, err)
	require.Equal(t, wire.Header{TypeMeta: metav1.TypeMeta{Kind: "CarpList"}}, list.Header())
	_, err = list.Next()
	require.Equal(t, io.EOF, err)
	require.Equal(t, "testapigroup.apimachinery.k8s.io/v1", list.Header().APIVersion)
	require.Equal(t, "42", list.Header().ResourceVersion)
}

func TestListsInUnusualForms(t *testing.T) {
	version := map[string]any{"resourceVersion": "42"}
	long := strings.Repeat("x", 50_000)
	chunked := join([]byte{0x5f}, of("it"), of("em"), of("s"), []byte{0xff})
	for name, c := range map[string]struct {
		body  []byte
		items []any
		kind  string
	}{
		"no kind":                       {mapping("metadata", version, "items", []any{"a", "b"}), []any{"a", "b"}, ""},
		"another kind, and items":       {mapping("metadata", version, "items", []any{"a"}, "kind", "Odd"), []any{"a"}, "Odd"},
		"no items":                      {mapping("metadata", version, "kind", "CarpList"), nil, "CarpList"},
		"items are null":                {mapping("metadata", version, "kind", "CarpList", "items", nil), nil, "CarpList"},
		"indefinite length":             {openMapping("metadata", raw(openMapping("resourceVersion", "42")), "items", raw(openArray("a", raw(openArray())))), []any{"a", []any{}}, ""},
		"text strings":                  {mapping(raw(textString("metadata")), raw(mapping(raw(textString("resourceVersion")), raw(textString("42")))), raw(textString("items")), raw(array(raw(textString("a")))), raw(textString("kind")), raw(textString("CarpList"))), []any{"a"}, "CarpList"},
		"a name in parts":               {mapping("metadata", version, raw(chunked), []any{"a"}), []any{"a"}, ""},
		"tags everywhere":               {tagged(55799, tagged(55799, mapping("metadata", raw(tagged(55799, of(version))), "items", raw(tagged(55799, array("a")))))), []any{"a"}, ""},
		"items that are no objects":     {mapping("metadata", version, "items", []any{nil, int64(5), "x", []any{int64(1)}}), []any{nil, int64(5), "x", []any{int64(1)}}, ""},
		"unknown fields":                {mapping("first", long, "metadata", version, "items", []any{"a"}, "last", []any{long}), []any{"a"}, ""},
		"an item larger than a buffer":  {mapping("metadata", version, "items", []any{long, "b"}), []any{long, "b"}, ""},
		"a kind that is no string":      {mapping("metadata", version, "items", []any{"a"}, "kind", 5), []any{"a"}, ""},
		"a type without the last field": {mapping("metadata", version, "kind", "List", "apiVersion", nil), nil, "List"},
	} {
		for how, deliver := range wiretest.Deliveries {
			t.Run(name+", "+how, func(t *testing.T) {
				got := readList(deliver(bytes.NewReader(c.body)), roomy)
				require.Equal(t, io.EOF, got.Err)
				require.Equal(t, c.kind, got.Header.Kind)
				require.Equal(t, "42", got.Header.ResourceVersion)
				require.Len(t, got.Items, len(c.items))
				for i, want := range c.items {
					require.Equal(t, want, valueOf(t, got.Items[i]))
				}
			})
		}
	}
}

func valueOf(t testing.TB, item []byte) any {
	t.Helper()
	content, err := decodeMap(mapping("item", raw(item)))
	require.NoError(t, err)
	return content["item"]
}

func TestMalformedListsAreRefused(t *testing.T) {
	list := func(parts ...any) []byte { return mapping(append([]any{"kind", "CarpList"}, parts...)...) }
	for name, body := range map[string][]byte{
		"a reserved form":             {0xfc},
		"a break":                     {0xff},
		"a reserved form in an item":  list("items", raw(array(raw{0x1c}))),
		"a number without length":     list("items", raw(array(raw{0x1f}))),
		"a tag without length":        list("items", raw(array(raw{0xdf, 0}))),
		"a break in an item":          list("items", raw(array(raw{0xff}))),
		"a break in an array of one":  list("items", raw(array(raw{0x81, 0xff}))),
		"a string in wrong parts":     list("items", raw(array(raw{0x5f, 0x61, 'a', 0xff}))),
		"parts in parts":              list("items", raw(array(raw{0x5f, 0x5f, 0xff}))),
		"a string beyond all memory":  list("items", raw(array(raw(head8(majorBytes, math.MaxUint64))))),
		"a string of negative length": list("items", raw(array(raw(head8(majorBytes, 1<<63))))),
		"an array beyond all memory":  list("items", raw(head8(majorArray, math.MaxUint64))),
		"a map beyond all memory":     head8(majorMap, math.MaxInt64),
		"items that are an object":    list("items", map[string]any{}),
		"items that are undefined":    list("items", raw{0xf7}),
		"items twice":                 list("items", nil, "items", nil),
		"kind twice":                  list("kind", "CarpList"),
		"metadata twice":              list("metadata", nil, "metadata", nil),
		"metadata that is an array":   list("metadata", []any{}),
		"metadata with a field twice": list("metadata", raw(mapping("a", 1, "a", 2))),
		"metadata with bad text":      list("metadata", raw(mapping("a", raw(textString("\xff"))))),
		"a version that is a number":  list("metadata", raw(mapping("resourceVersion", 42))),
		"a token that is a number":    list("metadata", raw(mapping("continue", 42))),
		"a field name that is none":   mapping(5, 5),
		"a field name of bad text":    mapping(raw(textString("\xff")), 5),
		"more behind the list":        append(list("items", nil), 0),
		"half of data after it":       append(list("items", nil), 0x19),
		"a field without value":       join([]byte{0xbf}, of("kind"), []byte{0xff}),
		"metadata with half a field":  list("metadata", raw(join([]byte{0xbf}, of("a"), []byte{0xff}))),
		"a version that is a bignum":  list("metadata", raw(mapping("resourceVersion", raw(tagged(2, of("1")))))),
		"an end with no beginning":    list("items", raw(join(openArray(), []byte{0xff}))),
		"simple values of two bytes":  list("metadata", raw(mapping("a", raw{0xf8, 0x10}))),
		"a float that is no number":   list("metadata", raw(mapping("a", raw{0xf9, 0x7e, 0}))),
	} {
		for how, deliver := range wiretest.Deliveries {
			t.Run(name+", "+how, func(t *testing.T) {
				require.ErrorIs(t, readList(deliver(bytes.NewReader(body)), roomy).Err, wire.ErrMalformed)
			})
		}
	}
}

func TestListsCutShortEndUnexpectedly(t *testing.T) {
	broken := errors.New("connection reset")
	for _, body := range [][]byte{
		served(t, carps(2)),
		openMapping("kind", "CarpList", "items", raw(openArray(raw(openMapping("a", 300))))),
	} {
		for n := range body {
			got := readList(bytes.NewReader(body[:n]), roomy)
			require.Equal(t, io.ErrUnexpectedEOF, got.Err, "of %d bytes", n)
			got = readList(io.MultiReader(bytes.NewReader(body[:n]), iotest.ErrReader(broken)), roomy)
			require.Equal(t, broken, got.Err, "after %d bytes", n)
		}
		got := readList(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(broken)), roomy)
		require.Equal(t, broken, got.Err, "which would be no good end")
	}
}

func TestAnErrorOfAListStays(t *testing.T) {
	for _, body := range [][]byte{
		served(t, carps(1)), served(t, carps(1))[:40], mapping("kind", "Table", "rows", nil), {0xff},
	} {
		list := Encoding.List(bytes.NewReader(body), roomy)
		var first error
		for first == nil {
			_, first = list.Next()
		}
		item, second := list.Next()
		require.Nil(t, item)
		require.Equal(t, first, second)
	}
}

func TestOtherKindsAreNoLists(t *testing.T) {
	var shuffled bytes.Buffer
	require.NoError(t, theirs(t).EncodeNondeterministic(status(), &shuffled))
	for name, c := range map[string]struct {
		body   []byte
		kind   string
		status *metav1.Status
	}{
		"a Status":                     {served(t, status()), "Status", status()},
		"a Status in any order":        {shuffled.Bytes(), "Status", status()},
		"a Status whose kind is last":  {mapping("message", "m", "code", 5, "kind", "Status"), "Status", &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Message: "m", Code: 5}},
		"a Status that is malformed":   {mapping("kind", "Status", "code", "five"), "Status", nil},
		"an object":                    {served(t, &carp.Carp{TypeMeta: metav1.TypeMeta{Kind: "Carp", APIVersion: "v1"}}), "Carp", nil},
		"a Table before its rows":      {join(head8(majorMap, 3), of("kind"), of("Table"), []byte("never looked at")), "Table", nil},
		"nothing":                      {mapping(), "", nil},
		"nothing that says what it is": {mapping("metadata", nil, "code", 5), "", nil},
		"an array":                     {array("a"), "", nil},
		"a string":                     {of("list"), "", nil},
		"null":                         {of(nil), "", nil},
		"JSON":                         {[]byte(`{"kind":"Status"}`), "", nil},
	} {
		for how, deliver := range wiretest.Deliveries {
			t.Run(name+", "+how, func(t *testing.T) {
				got := readList(deliver(bytes.NewReader(c.body)), roomy)
				require.Empty(t, got.Items)
				require.Equal(t, &wire.NotListError{Kind: c.kind, Status: c.status}, got.Err)
			})
		}
	}
	long := &wire.NotListError{}
	require.ErrorAs(t, readList(bytes.NewReader(mapping("kind", strings.Repeat("\x00k", 5000))), roomy).Err, &long)
	require.Less(t, len(long.Error()), 2000, "foreign text is cut")
}

func TestAStatusIsReportedWithoutItsOversizedParts(t *testing.T) {
	limits := roomy
	limits.ValueBytes = 120
	body := mapping("x", strings.Repeat("x", 98), "message", strings.Repeat("m", 90), "reason", strings.Repeat("r", 90), "code", 5, "kind", "Status")
	notList := &wire.NotListError{}
	require.ErrorAs(t, readList(bytes.NewReader(body), limits).Err, &notList)
	require.Equal(t, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status"}, Message: strings.Repeat("m", 90), Code: 5,
	}, notList.Status)
}

func TestValuesUpToTheLimitPass(t *testing.T) {
	long := strings.Repeat("x", 98) // 100 bytes with its head
	version := map[string]any{"resourceVersion": long[:80]}
	require.Len(t, of(version), 99)
	for name, c := range map[string]struct {
		body  []byte
		bytes int
	}{
		"an item":               {mapping("items", raw(array("a", long, "b"))), 100},
		"an item of many parts": {mapping("items", raw(array("a", strings.Split(long[:49], ""), "b"))), 100},
		"metadata":              {mapping("items", nil, "metadata", version), 99},
		"an unknown field":      {mapping("items", nil, "x", long), 100},
		"a kind":                {mapping("items", nil, "kind", long), 100},
		"a field name":          {mapping("items", nil, long, nil), 100},
	} {
		t.Run(name, func(t *testing.T) {
			for how, deliver := range wiretest.Deliveries {
				limits := wire.Limits{ValueBytes: c.bytes, Nesting: 10, TokenBytes: 1}
				require.Equal(t, io.EOF, readList(deliver(bytes.NewReader(c.body)), limits).Err, how)
				limits.ValueBytes--
				require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limits.ValueBytes},
					readList(deliver(bytes.NewReader(c.body)), limits).Err, how)
			}
		})
	}
}

func TestTokensUpToTheLimitPass(t *testing.T) {
	for _, token := range [][]byte{of("12345678"), textString("12345678")} {
		body := mapping("metadata", raw(mapping("continue", raw(token))), "items", nil)
		limits := roomy
		limits.TokenBytes = 8
		require.Equal(t, "12345678", readList(bytes.NewReader(body), limits).Header.Continue)
		limits.TokenBytes = 7
		got := readList(bytes.NewReader(body), limits)
		require.Equal(t, &wire.LimitError{What: wire.LimitToken, Limit: 7}, got.Err)
		require.Empty(t, got.Header.Continue)
	}
}

func TestAnItemNestedTooDeepSpoilsNoOther(t *testing.T) {
	limits := roomy
	limits.Nesting = 50
	body := mapping("items", raw(array(raw(nested(maxLevels)), raw(mapping("a", 1)))))
	got := readList(bytes.NewReader(body), limits)
	require.Equal(t, io.EOF, got.Err)
	require.Len(t, got.Items, 2)
	_, err := Encoding.Unstructured(got.Items[0], limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: 50}, err)
	_, err = Encoding.Unstructured(got.Items[1], limits)
	require.NoError(t, err)

	body = mapping("items", raw(array(raw(nested(maxLevels+1)), raw(mapping("a", 1)))))
	got = readList(bytes.NewReader(body), limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: 50}, got.Err)
}

// nested returns a map with that many levels.
func nested(levels int) []byte {
	data := mapping("a", nil)
	for range levels - 1 {
		data = append([]byte{0xa1, 0x41, 'a'}, data...)
	}
	return data
}

func TestMemoryIsBoundedWhateverABodyClaims(t *testing.T) {
	limits := wire.Limits{ValueBytes: 4 << 20, Nesting: 1000, TokenBytes: 64 << 10}
	limit := &wire.LimitError{What: wire.LimitValue, Limit: limits.ValueBytes}
	head := join(head8(majorMap, 1<<40), of("items"), head8(majorArray, 1<<40))
	for name, c := range map[string]struct {
		body func() io.Reader
		err  error
		most uint64
	}{
		"a length with nothing behind it": {func() io.Reader {
			return bytes.NewReader(join(head, head8(majorBytes, 4<<20-9), []byte("ten bytes.")))
		}, io.ErrUnexpectedEOF, 256 << 10},
		"a length beyond the limit": {func() io.Reader {
			return bytes.NewReader(join(head, head8(majorBytes, 4<<20-8), []byte("ten bytes.")))
		}, limit, 256 << 10},
		"a count with nothing behind it": {func() io.Reader {
			return bytes.NewReader(join(head, head8(majorArray, 1<<40), []byte("ten bytes.")))
		}, io.ErrUnexpectedEOF, 256 << 10},
		"endless nesting": {func() io.Reader {
			return io.MultiReader(bytes.NewReader(head), &repeating{data: []byte{0x82}})
		}, &wire.LimitError{What: wire.LimitNesting, Limit: 1000}, 1 << 20},
		"endless tags": {func() io.Reader { return &repeating{data: []byte{0xd9, 0xd9, 0xf7}} }, limit, 256 << 10},
		"an endless item": {func() io.Reader {
			return io.MultiReader(bytes.NewReader(head), &repeating{data: []byte{0x9f, 0x00, 0xff}, first: []byte{0x9f}})
		}, limit, 20 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			body := c.body()
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			got := readList(body, limits)
			goruntime.ReadMemStats(&after)
			require.Equal(t, c.err, got.Err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, c.most)
		})
	}
}

// repeating is a body that repeats the same bytes.
type repeating struct {
	first []byte // before the repeated ones, once
	data  []byte
	at    int
}

func (r *repeating) Read(p []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(p, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

func TestItemsAndFramesAreCutOutWithoutAllocating(t *testing.T) {
	large := widget(strings.Repeat("x", 5000))
	list := Encoding.List(io.MultiReader(
		bytes.NewReader(join(head8(majorMap, 1), of("items"), head8(majorArray, 1<<40))),
		&repeating{data: of(large.Object)}), roomy)
	next := func() {
		if _, err := list.Next(); err != nil {
			t.Fatal(err)
		}
	}
	next()
	require.Zero(t, testing.AllocsPerRun(1000, next))

	w := Encoding.Watch(&repeating{data: servedFrame(t, "ADDED", &large)}, roomy)
	nextFrame := func() {
		if _, err := w.Next(); err != nil {
			t.Fatal(err)
		}
	}
	nextFrame()
	require.Zero(t, testing.AllocsPerRun(1000, nextFrame))
}
