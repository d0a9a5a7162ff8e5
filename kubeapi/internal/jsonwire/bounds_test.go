package jsonwire

import (
	"io"
	"runtime"
	"strings"
	"testing"

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

func TestFieldsBesideItemsCountAsOneValue(t *testing.T) {
	const limit = 100_000
	limits := wire.Limits{ValueBytes: limit, Nesting: 1000, TokenBytes: 1000}
	fields := func(n int) string { return `"x":` + quoted(n-12-limit/2) + `,"message":` + quoted(limit/2) + `,` }
	read := func(raw string) error {
		_, err := Encoding.List(strings.NewReader(raw), limits).Next()
		return err
	}
	err := read(`{` + fields(limit+4) + `"kind":"Status"}`)
	require.ErrorAs(t, err, new(*wire.NotListError))
	err = read(`{` + fields(limit+5) + `"kind":"Status"}`)
	require.Equal(t, &wire.LimitError{What: wire.LimitValue, Limit: limit}, err)
}
