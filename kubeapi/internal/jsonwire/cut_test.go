package jsonwire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// named are the fields that the tests request. A pod has some of them.
var named = &wire.Fields{Names: wiretest.NamesOf(
	[]string{"kind"}, []string{"metadata", "name"}, []string{"metadata", "labels"}, []string{"metadata", "annotations", "a/b.c"},
	[]string{"spec", "nodeName"}, []string{"spec", "containers", "image"}, []string{"spec", "containers", "resources", "limits"},
	[]string{"a"}, []string{"b", "a"}, []string{"é"},
)}

func cutOf(t *testing.T, raw string) string {
	t.Helper()
	cut, err := Encoding.Cut([]byte("before"), []byte(raw), named, limits)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(cut), "before"))
	return string(cut[len("before"):])
}

func TestOnlyWantedFieldsAreLeftOfAnObject(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:      `{}`,
		" { }\n":  `{}`,
		`{"x":1}`: `{}`,
		`{"kind":"Pod","x":{"kind":1},"metadata":{"name":"n","managedFields":[{"name":1}],"labels":{"x":"y"}}}`:                        `{"kind":"Pod","metadata":{"name":"n","labels":{"x":"y"}}}`,
		`{"spec":{"containers":[{"name":"a","image":"i"},{"name":"b"},{"image":"j","resources":{"limits":{"cpu":1},"requests":{}}}]}}`: `{"spec":{"containers":[{"image":"i"},{},{"image":"j","resources":{"limits":{"cpu":1}}}]}}`,
		`{"metadata":{"annotations":{"a/b.c":"1","a/b":"2"}}}`:                                                                         `{"metadata":{"annotations":{"a/b.c":"1"}}}`,
		`{ "a" : [ 1 , {"x" : "}" } ] , "x" : "\"}" , "b" : null }`:                                                                    `{"a":[ 1 , {"x" : "}" } ],"b":null}`,
		`{"b":5,"a":-1e3}`: `{"b":null,"a":-1e3}`,
		`{"b":[1,{"a":2,"c":3},[{"a":4}],"s",null,true]}`: `{"b":[null,{"a":2},[{"a":4}],null,null,null]}`,
		`{"a":1,"a":2,"b":{"a":1},"b":3}`:                 `{"a":1,"a":2,"b":{"a":1},"b":null}`,
		`{"\u0061":1,"\u0062":{"\u0061":2,"\\a":3}}`:      `{"\u0061":1,"\u0062":{"\u0061":2}}`,
		`{"é":1,"\u00e9":2,"` + "\xc3" + `":3}`:           `{"é":1,"\u00e9":2}`,
		`{"a":nul,"x":nul}`:                               `{"a":nul}`, // the decoder refuses it
	} {
		require.Equal(t, want, cutOf(t, raw), raw)
	}
}

func TestFaultsOnThePathOfACutAreErrors(t *testing.T) {
	for _, raw := range []string{
		``, ` `, `null`, `5`, `[]`, `"a"`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`,
		`{"b":[1 2]}`, `{"b":[1,`, `{"b":[,]}`, `{"b":[1,]}`, `{"b":{"a":1]}`, `{"x":}`, `{"x":"}`, `{"x":[}`, `{"a":1}}`, `{"a":1} x`, `{"a":!}`, `{"b":{]}`,
	} {
		_, err := Encoding.Cut(nil, []byte(raw), named, limits)
		require.ErrorIs(t, err, wire.ErrMalformed, raw)
	}
}

func TestACutDescendsNoDeeperThanTheLimitOnNesting(t *testing.T) {
	limits := limits
	limits.Nesting = 10
	nested := func(arrays int) []byte {
		return []byte(`{"b":` + strings.Repeat("[", arrays) + strings.Repeat("]", arrays) + `}`)
	}
	_, err := Encoding.Cut(nil, nested(9), named, limits)
	require.NoError(t, err)
	_, err = Encoding.Cut(nil, nested(10), named, limits)
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: 10}, err)

	// An unwanted field may have any depth: it is not entered.
	deep := `{"x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`
	require.Equal(t, `{}`, cutOf(t, deep))
}

func TestACutCostsNothingButItsBuffer(t *testing.T) {
	pod, buffer := podJSON(1), make([]byte, 0, 64<<10)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := Encoding.Cut(buffer, pod, named, limits); err != nil {
			t.Fatal(err)
		}
	}))
	cut, err := Encoding.Cut(buffer, pod, named, limits)
	require.NoError(t, err)
	require.Less(t, len(cut), len(pod)/10)
}

// FuzzCut compares an object that is cut and then decoded with one that is decoded and then cut.
func FuzzCut(f *testing.F) {
	for _, raw := range append(objects, others...) {
		f.Add([]byte(raw))
	}
	for _, raw := range []string{
		`{"a":1,"b":{"a":[{}],"c":2},"spec":{"containers":[{"image":"i","name":"n"},null]},"metadata":{"name":"x","annotations":{"a/b.c":1}}}`,
		`{"b":{"a":1},"b":[5,{"a":2}],"\u0061":"\"","x":["]"]}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := string(raw)
		cut, err := Encoding.Cut(nil, raw, named, limits)
		require.Equal(t, before, string(raw))
		require.LessOrEqual(t, len(cut), 3*len(raw))
		whole, wholeErr := Encoding.Unstructured(raw, limits)
		if wholeErr == nil {
			require.NoError(t, err)
		}
		if err != nil {
			return
		}
		got, gotErr := Encoding.Unstructured(cut, limits)
		if wholeErr == nil {
			require.NoError(t, gotErr)
			require.Equal(t, wiretest.Pruned(whole, named.Names), any(got))
		}
		if gotErr == nil {
			require.Equal(t, wiretest.Pruned(got, named.Names), any(got), "something is left that nobody wants")
		}
		again, err := Encoding.Cut(nil, cut, named, limits)
		require.NoError(t, err)
		require.Equal(t, string(cut), string(again))
	})
}

func BenchmarkCutOfAPod(b *testing.B) {
	buffer := make([]byte, 0, 64<<10)
	benchmarkPods(b, func(raw []byte) error {
		_, err := Encoding.Cut(buffer, raw, named, limits)
		return err
	})
}
