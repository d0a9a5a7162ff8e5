package jsonwire

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// objects are difficult inputs for a parser. They are compared with apimachinery here, and seed the
// fuzz target.
var objects = []string{
	`{}`, " {\t}\r\n", `{"":""}`, `{"a":{"b":[{},[],null,true,false,"x"]}}`, `{"a":[ 1 , 2 ]}`,
	`{"a":1,"a":2}`, `{"a":{"x":1},"a":{"y":2}}`, `{"a":1,"\u0061":2}`, `{"a":1,"A":2}`,
	// Numbers.
	`{"a":[0,-0,1,-1,9,10,255,256,999999999999999999,-999999999999999999,1000000000000000000]}`,
	`{"a":[9223372036854775807,-9223372036854775808,9223372036854775808,-9223372036854775809,18446744073709551616]}`,
	`{"a":[9007199254740993,0.5,-0.0,1.0,1e3,1E+3,1e-3,1.5e300,123456789012345678901234567890,1e-999,5e-324]}`,
	`{"a":1e999}`, `{"a":-1e999}`, `{"a":` + strings.Repeat("9", 400) + `}`, `{"a":0.` + strings.Repeat("9", 400) + `}`,
	`{"a":01}`, `{"a":-}`, `{"a":-01}`, `{"a":00}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1e}`, `{"a":1e+}`, `{"a":1.e1}`, `{"a":0x1}`, `{"a":1`, `{"a":-`, `{"a":1.`, `{"a":1e`,
	`{"a":NaN}`, `{"a":Infinity}`, `{"a":-Infinity}`, `{"a":1_000}`, `{"a":1ee1}`, `{"a":1.2.3}`, `{"a":1-1}`,
	// Literals.
	`{"a":nul}`, `{"a":nulll}`, `{"a":Null}`, `{"a":tru}`, `{"a":falsey}`, `{"a":n`, `{"a":true false}`,
	// Strings.
	`{"a":"\"\\\/\b\f\n\r\t"}`, `{"a":"\u00e4\u20AC\uD83D\ude00\u0000"}`, `{"a":"ä€😀"}`, `{"\u00e4":1,"ä":2}`,
	`{"a":"\ud83d"}`, `{"a":"\ude00\ud83d"}`, `{"a":"\ud83dx"}`, `{"a":"\ud83d\n"}`, `{"a":"\ud83d\u0041"}`, `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ud83d\u"}`,
	"{\"a\":\"\xff\xc3\xe2\x82x\xed\xa0\x80\"}", "{\"\xff\":1,\"\ufffd\":2}", "{\"a\":\"" + strings.Repeat("\xff", 100) + "\"}",
	`{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\U0041"}`, `{"a":"\`, `{"a":"\u`, `{"a":"`, `{"a":"\"`, `{"a":"\'"}`,
	"{\"a\":\"\x00\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"x\n\"}", "{\"a\":\"12345678\t\"}", "{\"a\":\"\x7f\x20\"}", "{\"a\":\"ä\x01\"}",
	`{"a":"1234567"}`, `{"a":"12345678"}`, `{"a":"123456789"}`, `{"a":"1234567ä"}`, `{"a":"1234567\n1234567\n"}`,
	`{"` + strings.Repeat("n", 64) + `":"` + strings.Repeat("v", 64) + `","` + strings.Repeat("n", 65) + `":"` + strings.Repeat("v", 65) + `"}`,
	// Separators.
	`{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1,,"b":2}`, `{"a":1 "b":2}`, `{"a"::1}`, `{"a",1}`, `{a:1}`, `{'a':1}`, `{1:1}`, `{null:1}`,
	`{"a":[,]}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":{]}`, `{"a":[}]}`, `{"a":[`, `{"a":[1`, `{"a":[1,`, `{"a":{`, `{"a"`, `{"a`, `{"a":`, `{`, `{"a":1`,
	`{}{}`, `{} x`, `{},`, `{}]`, `{}` + "\x00", "\x00{}", "\ufeff{}", "{\u00a0}", "{\f}", "{/**/}",
	// Maps of each size up to one that grows.
	`{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8}`, `{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9}`,
	`{"metadata":{"name":"a","labels":{"b":"c"}},"spec":{"d":[{"e":1.5},{"f":[]}]}}`,
}

// others are not objects.
var others = []string{``, ` `, `null`, `[]`, `"x"`, `"{}"`, `5`, `true`, `x`, `<html>`, `[{}]`, ` null `}

func TestObjectsBecomeWhatApimachineryMakesOfThem(t *testing.T) {
	for _, raw := range append(objects, string(podJSON(1)), string(podJSON(2))) {
		compare(t, []byte(raw))
	}
}

// compare compares a result with apimachinery's.
func compare(t *testing.T, raw []byte) {
	t.Helper()
	got, err := Encoding.Unstructured(raw, limits)
	var want map[string]any
	wantErr := json.Unmarshal(raw, &want)
	if want == nil && wantErr == nil { // null
		require.ErrorIs(t, err, wire.ErrMalformed)
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%.200q: got error %v, apimachinery's is %v", raw, err, wantErr)
	}
	if err != nil {
		require.ErrorIs(t, err, wire.ErrMalformed)
		require.Nil(t, got)
		require.Less(t, len(err.Error()), 200)
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%.200q: got %.200v, apimachinery makes %.200v of it", raw, got, want)
	}
}

func TestValuesThatAreNoObjectsAreRefused(t *testing.T) {
	for _, raw := range others {
		_, err := Encoding.Unstructured([]byte(raw), limits)
		require.ErrorIs(t, err, wire.ErrMalformed, raw)
		require.ErrorContains(t, err, "in place of an object")
		require.ErrorIs(t, Encoding.Into([]byte(raw), limits, new(typed)), wire.ErrMalformed, raw)
	}
}

func TestZeroKeepsItsSignWhereApimachineryKeepsIt(t *testing.T) {
	got, err := Encoding.Unstructured([]byte(`{"a":-0,"b":-0.0}`), limits)
	require.NoError(t, err)
	require.Equal(t, int64(0), got["a"])
	require.True(t, math.Signbit(got["b"].(float64)))
}

func TestErrorsOfAnObjectSayWhere(t *testing.T) {
	for raw, text := range map[string]string{
		`{"a":nul}`:   "got 'n' at offset 5, expected a value",
		`{"a":1e999}`: "the number 1e999 is too large",
		`{"a":` + strings.Repeat("9", 1000) + `}`: "the number 99999999999999999999999999999999… is too large",
		`{"a":1,}`:         "got '}' at offset 7, expected the name of a field",
		`{"a":[1`:          "unexpected end, expected a comma or the end of the array",
		`{"a":"\x"}`:       "got 'x' at offset 7, expected an escape",
		"{\"a\":\"\x01\"}": `got '\x01' at offset 6, expected a character of a string`,
		`{} ü`:             "got byte 0xc3 at offset 3, expected the end",
	} {
		_, err := Encoding.Unstructured([]byte(raw), limits)
		require.EqualError(t, err, "malformed response: "+text)
	}
}

func TestNestingEndsAtItsLimit(t *testing.T) {
	for _, limit := range []int{1, 2, 5, 1000} {
		limits := limits
		limits.Nesting = limit
		for _, test := range []struct {
			depth int
			want  error
		}{{limit, nil}, {limit + 1, &wire.LimitError{What: wire.LimitNesting, Limit: limit}}} {
			for _, raw := range []string{
				strings.Repeat(`{"a":`, test.depth-1) + `{}` + strings.Repeat(`}`, test.depth-1),
				strings.Repeat(`{"a":[`, test.depth/2) + strings.Repeat(`{"}":1`, test.depth%2) + strings.Repeat(`}`, test.depth%2) + strings.Repeat(`]}`, test.depth/2),
			} {
				got, err := Encoding.Unstructured([]byte(raw), limits)
				if test.want == nil {
					require.NoError(t, err)
					require.NoError(t, Encoding.Into([]byte(raw), limits, new(typed)))
					continue
				}
				require.Equal(t, test.want, err)
				require.Nil(t, got)
				require.Equal(t, test.want, Encoding.Into([]byte(raw), limits, new(typed)))
			}
		}
	}
}

func TestBracketsInStringsAndSideBySideDoNotNest(t *testing.T) {
	limits := limits
	limits.Nesting = 3
	raw := []byte(`{"a":"[[[[[[\"[[[[\\","b":[` + strings.Repeat(`{},`, 100) + `[]],"{{{{":1}`)
	_, err := Encoding.Unstructured(raw, limits)
	require.NoError(t, err)
	require.NoError(t, Encoding.Into(raw, limits, new(typed)))
}

// Without its own bound the parser would exhaust the stack, which ends the process.
func TestNestingIsBoundedWhateverTheLimit(t *testing.T) {
	limits := limits
	limits.Nesting = math.MaxInt
	_, err := Encoding.Unstructured([]byte(`{"a":`+nested(5_000_000)+`}`), limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: maxNesting}, err)
	require.ErrorIs(t, Encoding.Into([]byte(`{"a":`+nested(5_000_000)+`}`), limits, new(typed)), wire.ErrMalformed)
}

func TestAParserKeepsNothingOfAnObject(t *testing.T) {
	for _, raw := range []string{
		`{"a":1,"b":{"c":2,"d":[3,4,x`, `{"a":[1,2,{"b":`, `{"a":[[[1],2],{"b":{"c":[]}}],"d":[1,2]}`, string(podJSON(1)),
	} {
		var p parser
		_, _ = p.parse([]byte(raw), 1000)
		require.Nil(t, p.data)
		require.Empty(t, p.fields)
		require.Empty(t, p.elements)
		for _, left := range p.fields[:cap(p.fields)] {
			require.Zero(t, left)
		}
		for _, left := range p.elements[:cap(p.elements)] {
			require.Nil(t, left)
		}
		got, err := p.parse([]byte(`{"x":[1],"y":{}}`), 1000)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"x": []any{int64(1)}, "y": map[string]any{}}, got)
	}
}

func TestObjectsReferToNothingOfTheirBytes(t *testing.T) {
	raw := podJSON(1)
	got, err := Encoding.Unstructured(raw, limits)
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(podJSON(1), &want))
	for i := range raw {
		raw[i] = 'x'
	}
	require.Equal(t, want, got)
}
