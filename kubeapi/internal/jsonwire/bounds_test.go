package jsonwire

import (
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// A value may be as large as the limit and no byte larger, at any position.
func TestTheLimitOfAValueIsExact(t *testing.T) {
	const limit = 10_000
	limits := wire.Limits{ValueBytes: limit, Nesting: 10, TokenBytes: limit}
	blanks := func(n int) string { return strings.Repeat(" ", n) }
	for name, body := range map[string]func(size int) string{
		"item":                       func(n int) string { return `{"items":[{},` + object(n) + `]}` },
		"item, a string":             func(n int) string { return `{"items":[` + quoted(n) + `]}` },
		"item, a number":             func(n int) string { return `{"items":[` + strings.Repeat("1", n) + `]}` },
		"item, an array":             func(n int) string { return `{"items":[[` + quoted(n-2) + `]]}` },
		"unknown field":              func(n int) string { return `{"x":` + object(n) + `,"items":[]}` },
		"name":                       func(n int) string { return `{` + quoted(n) + `:1,"items":[]}` },
		"metadata":                   func(n int) string { return `{"items":[],"metadata":` + object(n) + `}` },
		"kind":                       func(n int) string { return `{"items":[],"kind":` + quoted(n) + `}` },
		"blanks before":              func(n int) string { return blanks(n) + `{"items":[]}` },
		"blanks behind":              func(n int) string { return `{"items":[]}` + blanks(n) },
		"blanks before items":        func(n int) string { return `{"items":[` + blanks(n) + `{}]}` },
		"blanks before comma":        func(n int) string { return `{"items":[{}` + blanks(n) + `,{}]}` },
		"blanks behind comma":        func(n int) string { return `{"items":[{},` + blanks(n) + object(limit) + `]}` },
		"blanks in front of a name":  func(n int) string { return `{` + blanks(n) + `"items":[]}` },
		"blanks in front of a colon": func(n int) string { return `{"items"` + blanks(n) + `:[]}` },
		"blanks in front of a value": func(n int) string { return `{"items":` + blanks(n) + `[]}` },
	} {
		t.Run("list, "+name, func(t *testing.T) {
			arriving(t, body(limit), func(t *testing.T, body io.Reader) {
				require.Equal(t, io.EOF, readList(body, limits).err)
			})
			arriving(t, body(limit+1), func(t *testing.T, body io.Reader) {
				require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limit}, readList(body, limits).err)
			})
		})
	}
	for name, body := range map[string]func(size int) string{
		"frame":                func(n int) string { return `{"type":"ADDED","object":` + object(n-26) + `}` },
		"frame, of blanks":     func(n int) string { return `{"type":"ADDED","object":{}` + blanks(n-28) + `}` },
		"frame with much else": func(n int) string { return `{"x":` + object(n-32) + `,"type":"ADDED","object":5}` },
		"blanks between frames": func(n int) string {
			return `{"type":"ADDED","object":{}}` + blanks(n) + `{"type":"ADDED","object":` + object(limit-26) + `}`
		},
		"blanks behind frames": func(n int) string { return `{"type":"ADDED","object":{}}` + blanks(n) },
	} {
		t.Run("watch, "+name, func(t *testing.T) {
			arriving(t, body(limit), func(t *testing.T, body io.Reader) {
				_, err := readWatch(body, limits)
				require.Equal(t, io.EOF, err)
			})
			arriving(t, body(limit+1), func(t *testing.T, body io.Reader) {
				_, err := readWatch(body, limits)
				require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limit}, err)
			})
		})
	}
}

func TestTheLimitOfATokenIsExactInDecodedBytes(t *testing.T) {
	limits := limits
	limits.TokenBytes = 100
	for _, letter := range []string{"x", `\u0078`, `\/`} {
		body := func(n int) string {
			return `{"metadata":{"continue":"` + strings.Repeat(letter, n) + `"},"items":[]}`
		}
		list := readList(strings.NewReader(body(100)), limits)
		require.Equal(t, io.EOF, list.err)
		require.Len(t, list.header.Continue, 100)
		list = readList(strings.NewReader(body(101)), limits)
		require.Equal(t, &wire.LimitError{What: wire.LimitToken, Limit: 100}, list.err)
		require.Empty(t, list.header.Continue)
	}
}

func TestMetadataOfAListNestsNoDeeperThanItsLimit(t *testing.T) {
	limits := limits
	limits.Nesting = 10
	list := readList(strings.NewReader(`{"items":[],"metadata":{"x":`+nested(9)+`}}`), limits)
	require.Equal(t, io.EOF, list.err)
	list = readList(strings.NewReader(`{"items":[],"metadata":{"x":`+nested(10)+`}}`), limits)
	require.ErrorContains(t, list.err, "metadata: nested deeper than 10 levels")
	require.ErrorAs(t, list.err, new(*wire.LimitError))
}

// endless is a body that begins with a text and then repeats another forever.
type endless struct {
	begin, again string
	read         int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.begin)
	e.begin = e.begin[n:]
	for n < len(p) {
		m := copy(p[n:], e.again[e.read%len(e.again):])
		n, e.read = n+m, e.read+m
	}
	return n, nil
}

func TestNoBodyTakesMoreMemoryThanItsLimit(t *testing.T) {
	const limit = 1 << 20
	limits := wire.Limits{ValueBytes: limit, Nesting: 1000, TokenBytes: 1000}
	for name, body := range map[string]endless{
		"line":                       {again: "x"},
		"blanks":                     {again: " \n"},
		"brackets":                   {again: "["},
		"braces":                     {again: `{"a":`},
		"list of nothing but a name": {begin: `{"`, again: "x"},
		"string":                     {begin: `{"items":[{"a":"`, again: "x"},
		"backslashes":                {begin: `{"items":[{"a":"`, again: `\`},
		"quotes":                     {begin: `{"items":[{"a":"`, again: `\"`},
		"nesting":                    {begin: `{"items":[`, again: `{"a":[`},
		"number":                     {begin: `{"items":[`, again: `9`},
		"blanks in items":            {begin: `{"items":[`, again: ` `},
		"token":                      {begin: `{"metadata":{"continue":"`, again: `x`},
		"frame":                      {begin: `{"type":"`, again: `A`},
		"frame's object":             {begin: `{"type":"ADDED","object":{"a":"`, again: `\\`},
		"frame's blanks":             {begin: `{"type":"ADDED"`, again: "\t"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, read := range []func(io.Reader) error{
				func(r io.Reader) error { return readList(r, limits).err },
				func(r io.Reader) error { _, err := readWatch(r, limits); return err },
			} {
				body := body
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := read(&body)
				runtime.ReadMemStats(&after)
				require.Error(t, err)
				require.LessOrEqual(t, body.read, limit+firstBytes)
				// Doubling a buffer allocates twice its last size.
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(3*limit))
			}
		})
	}
}

func TestFieldsBesideItemsCountAsOneValueAndAreKeptOnlyForAStatus(t *testing.T) {
	const limit = 100_000
	limits := wire.Limits{ValueBytes: limit, Nesting: 1000, TokenBytes: 1000}
	fields := func(n int) string { return `"x":` + quoted(n-12-limit/2) + `,"message":` + quoted(limit/2) + `,` }
	read := func(raw string) (*list, error) {
		body := Encoding.List(strings.NewReader(raw), limits).(*list)
		_, err := body.Next()
		return body, err
	}
	body, err := read(`{` + fields(limit+4) + `"kind":"Status"}`)
	require.ErrorAs(t, err, new(*wire.NotListError))
	require.Less(t, cap(body.header.status), limit)
	body, err = read(`{` + fields(limit+5) + `"kind":"Status"}`)
	require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limit}, err)
	require.Less(t, cap(body.header.status), limit)

	for _, known := range []string{`"kind":"PodList","reason":"none"`, `"items":[{}],"reason":"none"`} {
		body, _ = read(`{` + fields(limit-100) + known)
		require.Zero(t, cap(body.header.status))
	}
}

func TestEndlessFieldsAreAnError(t *testing.T) {
	limits := wire.Limits{ValueBytes: 10_000, Nesting: 10, TokenBytes: 10}
	want := &wire.LimitError{What: wire.LimitValue, Limit: 10_000}
	require.Equal(t, want, readList(&endless{begin: `{"":1`, again: `,"":1`}, limits).err)
	_, err := readWatch(&endless{begin: `{"":1`, again: `,"":1`}, limits)
	require.Equal(t, want, err)
}

func TestCuttingItemsAndFramesTakesNoMemory(t *testing.T) {
	items := &endless{begin: `{"kind":"PodList","items":[{}`, again: `, ` + string(podJSON(1))}
	list := Encoding.List(items, limits)
	require.Zero(t, testing.AllocsPerRun(2000, func() {
		if _, err := list.Next(); err != nil {
			t.Fatal(err)
		}
	}))
	// A watch arrives like this: frame by frame, with nothing of the next frame.
	for _, size := range []int{100, firstBytes, 10_000, 60_000} {
		frame := `{"type":"MODIFIED","object":` + object(size) + "}\n"
		frames := Encoding.Watch(&portions{portion: frame}, limits)
		require.Zero(t, testing.AllocsPerRun(2000, func() {
			if _, err := frames.Next(); err != nil {
				t.Fatal(err)
			}
		}))
	}
}

// portions never returns more than the rest of one portion, and repeats it.
type portions struct{ portion, rest string }

func (p *portions) Read(into []byte) (int, error) {
	if p.rest == "" {
		p.rest = p.portion
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func TestAWaitingWatchHoldsLittle(t *testing.T) {
	const watches = 200
	before := heapBytes()
	var open []wire.Watch
	for range watches {
		frame := `{"type":"MODIFIED","object":` + object(100_000) + "}\n"
		frames := Encoding.Watch(io.MultiReader(strings.NewReader(frame), iotest.ErrReader(io.ErrClosedPipe)), limits)
		raw, err := frames.Next()
		require.NoError(t, err)
		_, err = Encoding.Unstructured(raw.Object, limits)
		require.NoError(t, err)
		_, err = frames.Next() // the call that waits
		require.Equal(t, io.ErrClosedPipe, err)
		open = append(open, frames)
	}
	require.Less(t, heapBytes()-before, int64(watches*(firstBytes+1000)+1<<20))
	runtime.KeepAlive(open)
}

func TestAStringKeepsNeitherItsObjectNorItsNeighboursAlive(t *testing.T) {
	const objects, size = 100, 100_000
	before := heapBytes()
	var kept []any
	for range objects {
		raw := []byte(`{"metadata":{"name":"a"},"long":` + quoted(80) + `,"data":` + quoted(size) + `,"list":[` + quoted(size) + `]}`)
		got, err := Encoding.Unstructured(raw, limits)
		require.NoError(t, err)
		kept = append(kept, got["long"], got["metadata"])
	}
	require.Less(t, heapBytes()-before, int64(objects*size/10))
	runtime.KeepAlive(kept)
}

func TestHostileNamesDoNotMakeTheInternedOnesGrow(t *testing.T) {
	var p parser
	kept := len(p.names) * (maxInternedLength + 40)
	before := heapBytes()
	for i := range 100_000 {
		name := strings.Repeat("n", 40) + string(rune('a'+i%26)) + strings.Repeat("m", 10) + string(rune(0x4e00+i%20_000))
		p.names.string([]byte(name))
		p.values.value([]byte(name))
	}
	require.Less(t, heapBytes()-before, int64(3*kept))
	runtime.KeepAlive(&p)
}

func TestOnlyShortStringsAreInterned(t *testing.T) {
	var p parser
	raw := `{`
	for _, size := range []int{maxInternedLength, maxInternedLength + 1, 10_000} {
		raw += `"` + strings.Repeat("n", size) + `":"` + strings.Repeat("v", size) + `",`
	}
	_, err := p.parse([]byte(raw+`"x":"y"}`), 1)
	require.NoError(t, err)
	interned := 0
	for _, table := range []*internTable{&p.names, &p.values} {
		for _, place := range table {
			require.LessOrEqual(t, len(place.text), maxInternedLength)
			if place.text != "" {
				interned++
			}
		}
	}
	require.Equal(t, 4, interned)
}

func TestEqualShortStringsAreOne(t *testing.T) {
	raw := []byte(`{"metadata":"kubelet"}`)
	var p parser
	require.Zero(t, testing.AllocsPerRun(100, func() { p.names.string(raw[2:10]); p.values.value(raw[13:20]) }))
	require.Equal(t, "kubelet", p.values.value(raw[13:20]))
}

func TestAParserOfAHugeObjectIsNotPooled(t *testing.T) {
	for raw, kept := range map[string]bool{
		string(podJSON(1)): true,
		`{"a":["` + strings.Repeat(`","`, maxPooledValues/4) + `"]}`:   true,
		`{"a":["` + strings.Repeat(`","`, 2*maxPooledValues) + `"]}`:   false,
		`{"a":"` + strings.Repeat(`","a":"`, 2*maxPooledValues) + `"}`: false,
		`{"a":"\n` + strings.Repeat("x", maxPooledBytes/4) + `"}`:      true,
		`{"a":"\n` + strings.Repeat("x", maxPooledBytes) + `"}`:        false,
	} {
		var p parser
		_, err := p.parse([]byte(raw), 1000)
		require.NoError(t, err)
		require.Equal(t, kept, p.isPoolable(), "%.20s of %d bytes", raw, len(raw))
	}
}

func TestSlicesHaveNoRoomToSpare(t *testing.T) {
	got, err := Encoding.Unstructured([]byte(`{"a":[],"b":[1],"c":[1,2,3,4,5,6,7,8,9]}`), limits)
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		list := got[name].([]any)
		require.Equal(t, len(list), cap(list))
		require.NotNil(t, list)
	}
}

// heapBytes returns the size of the live heap. It collects twice, because a pool's content survives one collection.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
