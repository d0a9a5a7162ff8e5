package protowire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

func TestListsOfAPIServersComeItemByItem(t *testing.T) {
	for _, n := range []int{0, 1, 300} {
		want := carps(n)
		bodies := map[string][]byte{"at once": served(t, want), "streamed": streamed(t, want)}
		for how, body := range bodies {
			t.Run(fmt.Sprint(n, " items, ", how), func(t *testing.T) {
				wiretest.RequireList(t, Encoding, body, want, roomy)
			})
		}
	}
}

func TestHeaderGrowsAsTheListArrives(t *testing.T) {
	body := sealed(typeMeta("v1", "CarpList"), raw(item("first"), listMeta("42"), item("second")))
	list := Encoding.List(bytes.NewReader(body), roomy)
	require.Empty(t, list.Header())

	next, err := list.Next()
	require.NoError(t, err)
	require.Equal(t, "first", string(next))
	require.Equal(t, wire.Header{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "CarpList"}}, list.Header())

	next, err = list.Next()
	require.NoError(t, err)
	require.Equal(t, "second", string(next))
	require.Equal(t, "42", list.Header().ResourceVersion)
}

func TestListsInUnusualForms(t *testing.T) {
	kind := typeMeta("v1", "CarpList")
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		body  []byte
		items []string
		kind  string
	}{
		"raw before its type":            {sealed(raw(item("a"), listMeta("42")), kind), []string{"a"}, "CarpList"},
		"items and no kind":              {sealed(raw(item("a"), listMeta("42"))), []string{"a"}, ""},
		"an item without bytes":          {sealed(kind, raw(item(""), listMeta("42"))), []string{""}, "CarpList"},
		"metadata in two parts":          {sealed(kind, raw(listMeta("41"), item("a"), listMeta("42"))), []string{"a"}, "CarpList"},
		"type in two parts":              {sealed(kind, raw(listMeta("42")), bytesField(envelopeTypeMeta, textField(typeMetaKind, "List"))), nil, "List"},
		"unknown fields in the envelope": {sealed(varintField(9, 300), textField(8, long), kind, raw(listMeta("42")), textField(77, "x")), nil, "CarpList"},
		"unknown fields in the list":     {sealed(kind, raw(varintField(9, 1<<63), join(tagBytes(3, typeFixed64), make([]byte, 8)), listMeta("42"), item("a"), join(tagBytes(4, typeFixed32), make([]byte, 4)), textField(5, long), item("b"))), []string{"a", "b"}, "CarpList"},
		"an empty content encoding":      {sealed(kind, raw(listMeta("42")), textField(3, ""), textField(4, "")), nil, "CarpList"},
		"numbers longer than they need":  {sealed(kind, bytesField(envelopeRaw, join(listMeta("42"), []byte{0x92, 0x80, 0, 0x81, 0x80, 0, 'a'}))), []string{"a"}, "CarpList"},
		"an item larger than a buffer":   {sealed(kind, raw(listMeta("42"), item(long))), []string{long}, "CarpList"},
	} {
		for how, deliver := range wiretest.Deliveries {
			t.Run(name+", "+how, func(t *testing.T) {
				got := readList(deliver(bytes.NewReader(c.body)), roomy)
				require.Equal(t, io.EOF, got.Err)
				require.Equal(t, c.kind, got.Header.Kind)
				require.Equal(t, c.kind != "", got.Header.APIVersion == "v1")
				require.Equal(t, "42", got.Header.ResourceVersion)
				require.Len(t, got.Items, len(c.items))
				for i, want := range c.items {
					require.Equal(t, want, string(got.Items[i]))
				}
			})
		}
	}
}

func TestMalformedListsAreRefused(t *testing.T) {
	kind := typeMeta("v1", "CarpList")
	tooLong := append(bytes.Repeat([]byte{0xff}, 10), 1)
	for name, body := range map[string][]byte{
		"HTML":                         []byte("<html></html>"),
		"two bytes of JSON":            []byte("{}"),
		"another version of the form":  append([]byte("k8s\x01"), kind...),
		"a group in the envelope":      sealed(kind, tagBytes(5, 3)),
		"a group in the list":          sealed(kind, raw(tagBytes(5, 3), tagBytes(5, 4))),
		"an unknown wire type":         sealed(kind, raw(tagBytes(5, 6))),
		"a field of number 0":          sealed(kind, raw(varintField(0, 1))),
		"a tag that is too long":       sealed(kind, tooLong),
		"a length that is too long":    sealed(kind, tagBytes(2, typeBytes), tooLong),
		"a negative length":            sealed(kind, tagBytes(2, typeBytes), number(math.MaxUint64)),
		"a number that is too long":    sealed(kind, raw(tagBytes(9, typeVarint), tooLong)),
		"an item longer than the list": sealed(kind, raw(listMeta("42"), tagBytes(listItems, typeBytes), number(5), []byte("four"))),
		"a tag cut by the list's end":  sealed(kind, raw(listMeta("42"), []byte{0x80}), []byte{1, 0}),
		"a number cut by the list's end": sealed(kind,
			raw(listMeta("42"), tagBytes(9, typeVarint), []byte{0x80}), []byte{1, 0}),
		"a fixed field cut by the list's end": sealed(kind, raw(tagBytes(9, typeFixed64), []byte("short")), []byte("more")),
		"items of another wire type":          sealed(kind, raw(varintField(listItems, 1))),
		"metadata of another wire type":       sealed(kind, raw(varintField(listMetadata, 1))),
		"metadata that is none":               sealed(kind, raw(textField(listMetadata, "\xff\xff"))),
		"a version of another wire type":      sealed(kind, raw(bytesField(listMetadata, varintField(2, 1)))),
		"a type that is none":                 sealed(textField(envelopeTypeMeta, "\xff")),
		"raw of another wire type":            sealed(kind, varintField(envelopeRaw, 1)),
		"a type of another wire type":         sealed(varintField(envelopeTypeMeta, 1)),
		"a content encoding":                  sealed(kind, textField(envelopeContentEncoding, "gzip"), raw(listMeta("42"))),
		"a content encoding that comes late":  sealed(kind, raw(listMeta("42"), item("a")), textField(envelopeContentEncoding, "gzip")),
		"a duplicate raw":                     sealed(kind, raw(listMeta("42")), raw(listMeta("43"))),
	} {
		for how, deliver := range wiretest.Deliveries {
			t.Run(name+", "+how, func(t *testing.T) {
				require.ErrorIs(t, readList(deliver(bytes.NewReader(body)), roomy).Err, wire.ErrMalformed)
			})
		}
	}
}

func TestWhatLiesBehindAListIsNoItemOfIt(t *testing.T) {
	for name, last := range map[string][]byte{
		"a tag":            {0x80, 1, 0},
		"a number":         {9<<3 | typeVarint, 0x80, 1},
		"a fixed field":    {9<<3 | typeFixed32, 1, 2, 3, 4},
		"an unknown field": {9<<3 | typeBytes, 2, 'x', 'y'},
	} {
		// The list ends before the last byte of its last field.
		whole := join(listMeta("42"), last)
		body := sealed(typeMeta("v1", "CarpList"), tagBytes(envelopeRaw, typeBytes), number(uint64(len(whole)-1)), whole, item("x"))
		for how, deliver := range wiretest.Deliveries {
			got := readList(deliver(bytes.NewReader(body)), roomy)
			require.ErrorIs(t, got.Err, wire.ErrMalformed, "%s, %s", name, how)
			require.Empty(t, got.Items, "%s, %s", name, how)
		}
	}
}

func TestListsCutShortEndUnexpectedly(t *testing.T) {
	body := sealed(typeMeta("v1", "CarpList"), raw(listMeta("42"), varintField(9, 300), item("abc")), textField(4, "x"))
	whole := readList(bytes.NewReader(body), roomy)
	require.Equal(t, io.EOF, whole.Err)
	// If raw ends there, nothing shows that more should follow.
	complete := map[int]bool{len(body): true, len(body) - 3: true}
	for n := range len(body) {
		got := readList(bytes.NewReader(body[:n]), roomy)
		if complete[n] {
			require.Equal(t, io.EOF, got.Err, "of %d bytes", n)
			continue
		}
		require.Equal(t, io.ErrUnexpectedEOF, got.Err, "of %d bytes", n)
	}
}

func TestErrorsOfABodyAreReturnedAsTheyAre(t *testing.T) {
	broken := errors.New("connection reset")
	body := served(t, carps(3))
	for n := range len(body) {
		got := readList(io.MultiReader(bytes.NewReader(body[:n]), iotest.ErrReader(broken)), roomy)
		require.Equal(t, broken, got.Err, "after %d bytes", n)
	}
}

func TestAnErrorOfAListStays(t *testing.T) {
	for _, body := range [][]byte{
		served(t, carps(1)),
		served(t, carps(1))[:40],
		sealed(typeMeta("v1", "Table")),
		[]byte("<html>"),
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
	for name, c := range map[string]struct {
		body   []byte
		kind   string
		status *metav1.Status
	}{
		"a Status":                   {served(t, status()), "Status", status()},
		"a Status that is malformed": {sealed(typeMeta("v1", "Status"), raw([]byte{0xff})), "Status", nil},
		"a Status found late":        {sealed(raw(listMeta("42")), typeMeta("v1", "Status")), "Status", nil},
		"an object":                  {served(t, &carp.Carp{TypeMeta: metav1.TypeMeta{Kind: "Carp"}}), "Carp", nil},
		"a Table before its rows":    {sealed(typeMeta("meta.k8s.io/v1", "Table"), []byte("never looked at")), "Table", nil},
		"nothing that says anything": {sealed(raw(listMeta("42"))), "", nil},
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
	require.ErrorAs(t, readList(bytes.NewReader(sealed(typeMeta("v1", strings.Repeat("\x00k", 5000)))), roomy).Err, &long)
	require.Less(t, len(long.Error()), 2000, "foreign text is cut")
}

func TestValuesUpToTheLimitPass(t *testing.T) {
	kind := typeMeta("v1", "CarpList")
	long := strings.Repeat("x", 100)
	version := listMeta(strings.Repeat("4", 96)) // 98 bytes with tag and length, in a field of 100
	require.Len(t, version, 100)
	for name, c := range map[string]struct {
		body  []byte
		bytes int
	}{
		"an item":                {sealed(kind, raw(item(long))), 100},
		"metadata":               {sealed(kind, raw(version)), 98},
		"an unknown field":       {sealed(kind, raw(textField(9, long))), 100},
		"an unknown outer field": {sealed(kind, raw(listMeta("42")), textField(9, long)), 100},
		"a type":                 {sealed(typeMeta("v1", strings.Repeat("x", 90)+"List"), raw(listMeta("42"))), 100},
	} {
		t.Run(name, func(t *testing.T) {
			for how, deliver := range wiretest.Deliveries {
				limits := wire.Limits{ValueBytes: c.bytes, Nesting: 1, TokenBytes: 1}
				require.Equal(t, io.EOF, readList(deliver(bytes.NewReader(c.body)), limits).Err, how)
				limits.ValueBytes--
				require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limits.ValueBytes},
					readList(deliver(bytes.NewReader(c.body)), limits).Err, how)
			}
		})
	}
}

func TestAStatusUpToTheLimitPasses(t *testing.T) {
	body := served(t, status())
	limits := roomy
	limits.ValueBytes = status().Size()
	notList := &wire.NotListError{}
	require.ErrorAs(t, readList(bytes.NewReader(body), limits).Err, &notList)
	limits.ValueBytes--
	require.IsType(t, &wire.LimitError{}, readList(bytes.NewReader(body), limits).Err)
}

func TestTokensUpToTheLimitPass(t *testing.T) {
	body := sealed(typeMeta("v1", "CarpList"), raw(bytesField(listMetadata, textField(metadataContinue, "12345678"))))
	limits := roomy
	limits.TokenBytes = 8
	require.Equal(t, "12345678", readList(bytes.NewReader(body), limits).Header.Continue)
	limits.TokenBytes = 7
	got := readList(bytes.NewReader(body), limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitToken, Limit: 7}, got.Err)
	require.Empty(t, got.Header.Continue)
}

func TestALengthWithNothingBehindItCostsNoMemory(t *testing.T) {
	limits := wire.Limits{ValueBytes: 16 << 20, Nesting: 1000, TokenBytes: 64 << 10}
	claim := join(tagBytes(listItems, typeBytes), number(16<<20), []byte("ten bytes."))
	body := sealed(typeMeta("v1", "CarpList"), tagBytes(envelopeRaw, typeBytes), number(1<<40), claim)
	frame := join([]byte{1, 0, 0, 0}, tagBytes(eventObject, typeBytes), number(15<<20), []byte("ten bytes."))
	const runs = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		require.Equal(t, io.ErrUnexpectedEOF, readList(bytes.NewReader(body), limits).Err)
		require.Equal(t, io.ErrUnexpectedEOF, readWatch(bytes.NewReader(frame), limits).Err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(runs*(256<<10)))
}

func TestSkippedFieldsAreNotHeld(t *testing.T) {
	limits := wire.Limits{ValueBytes: 16 << 20, Nesting: 1000, TokenBytes: 64 << 10}
	field := textField(9, strings.Repeat("x", limits.ValueBytes))
	body := sealed(typeMeta("v1", "CarpList"), raw(field, field, listMeta("42")))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := readList(bytes.NewReader(body), limits)
	runtime.ReadMemStats(&after)
	require.Equal(t, io.EOF, got.Err)
	require.Equal(t, "42", got.Header.ResourceVersion)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// repeating is a body that repeats the same bytes.
type repeating struct {
	data []byte
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

func TestItemsAndFramesAreCutOutWithoutAllocating(t *testing.T) {
	one := item(strings.Repeat("x", 6000))
	list := Encoding.List(io.MultiReader(
		bytes.NewReader(sealed(typeMeta("v1", "CarpList"), tagBytes(envelopeRaw, typeBytes), number(1<<60))),
		&repeating{data: one}), roomy)
	next := func() {
		if _, err := list.Next(); err != nil {
			t.Fatal(err)
		}
	}
	next()
	require.Zero(t, testing.AllocsPerRun(1000, next))

	frame := servedFrame(t, "ADDED", &carps(1).Items[0])
	w := Encoding.Watch(&repeating{data: frame}, roomy)
	nextFrame := func() {
		if _, err := w.Next(); err != nil {
			t.Fatal(err)
		}
	}
	nextFrame()
	require.Zero(t, testing.AllocsPerRun(1000, nextFrame))
}
