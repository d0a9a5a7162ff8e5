package jsonwire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

func TestWatchGivesTypeAndObjectOfEachFrame(t *testing.T) {
	const body = `{"type":"ADDED","object":{"a":1}}` + "\n" +
		`{"object":{"b":"}\"{"},"type":"MODIFIED"}` + "\r\n\n" +
		`{ "new" : [ {} ] , "type" : "DELETED" , "x" : null , "object" : { } }` +
		`{"type":"BOOKMARK","object":{"c":[]}}{"type":"ERROR","object":{"kind":"Status"}} ` +
		`{"t\u0079pe":"N\u00d6VEL","\u006fbject":{}}` +
		`{"type":"\u0041DDED","object":5}{"type":"ADDED","object":"x"}{"type":"ADDED","object":[{}]}{"type":"ADDED","object":nul}` +
		`{"type":"A","type":"B","object":{"a":1},"object":{"a":2}}{"type":"ADDED","object":{]}`
	arriving(t, body, func(t *testing.T, body io.Reader) {
		events, err := readWatch(body, limits)
		require.Equal(t, io.EOF, err)
		require.Equal(t, []event{
			{watch.Added, `{"a":1}`}, {watch.Modified, `{"b":"}\"{"}`}, {watch.Deleted, `{ }`}, {watch.Bookmark, `{"c":[]}`},
			{watch.Error, `{"kind":"Status"}`}, {"NÖVEL", `{}`},
			{watch.Added, `5`}, {watch.Added, `"x"`}, {watch.Added, `[{}]`}, {watch.Added, `nul`},
			{"B", `{"a":2}`}, {watch.Added, `{]`},
		}, events)
	})
}

func TestABodyMayEndBetweenFramesAndNowhereElse(t *testing.T) {
	const frame = `{"type":"ADDED","object":{"a":"\"x"}}`
	for _, body := range []string{"", " \n", frame, frame + "\n", frame + "\n" + frame} {
		arriving(t, body, func(t *testing.T, body io.Reader) {
			_, err := readWatch(body, limits)
			require.Equal(t, io.EOF, err)
		})
	}
	for cut := 1; cut < len(frame); cut++ {
		arriving(t, frame+"\n"+frame[:cut], func(t *testing.T, body io.Reader) {
			events, err := readWatch(body, limits)
			require.Equal(t, io.ErrUnexpectedEOF, err)
			require.Len(t, events, 1)
		})
	}
}

func TestBrokenFramesAreErrorsThatSayHow(t *testing.T) {
	for name, test := range map[string]struct{ body, text string }{
		"no JSON":             {"<html>", "'<' in place of a watch frame"},
		"array":               {`[]`, "an array in place of a watch frame"},
		"string":              {`"x"`, "a string in place of"},
		"number":              {`5`, "a number in place of"},
		"null":                {`null`, "null in place of"},
		"a list":              {`{"kind":"PodList","items":[{}]}`, "a PodList in place of a watch frame"},
		"hostile kind":        {`{"kind":"\u001b[2J` + strings.Repeat("x", 1000) + `"}`, "a [2J" + strings.Repeat("x", 508) + "… in place"},
		"no type":             {`{}`, "without type"},
		"type empty":          {`{"type":"","object":{}}`, "without type"},
		"type null":           {`{"type":null,"object":{}}`, "without type"},
		"kind not readable":   {`{"kind":"\x"}`, "without type"},
		"type a number":       {`{"type":5,"object":{}}`, "type of a watch frame cannot be read"},
		"type with bad end":   {`{"type":"\x","object":{}}`, "type of a watch frame cannot be read"},
		"no object":           {`{"type":"ADDED"}`, `"ADDED" without object`},
		"object null":         {`{"type":"ADDED","object":null}`, `"ADDED" without object`},
		"hostile type":        {`{"type":"\u001b[2J` + strings.Repeat("x", 1000) + `"}`, `"[2J` + strings.Repeat("x", 508) + `…" without`},
		"comma at the start":  {`{,"type":"ADDED"}`, "got ',', expected the name"},
		"comma at the end":    {`{"type":"ADDED",}`, "got '}', expected the name"},
		"no comma":            {`{"type":"ADDED" "object":{}}`, "expected a comma"},
		"no colon":            {`{"type" "ADDED"}`, "expected a colon"},
		"comma between":       {`,{}`, "',' in place of a watch frame"},
		"name is no string":   {`{type:"ADDED"}`, "got 't', expected the name"},
		"value is no value":   {`{"type":'ADDED'}`, `got '\'', expected a value`},
		"bracket is no brace": {`{"type":"ADDED"]`, "got ']', expected a comma"},
	} {
		t.Run(name, func(t *testing.T) {
			arriving(t, `{"type":"ADDED","object":{}}`+test.body, func(t *testing.T, body io.Reader) {
				frames := Encoding.Watch(body, limits)
				_, err := frames.Next()
				require.NoError(t, err)
				frame, err := frames.Next()
				require.ErrorIs(t, err, wire.ErrMalformed)
				require.ErrorContains(t, err, test.text)
				require.Empty(t, frame)
				_, again := frames.Next()
				require.Equal(t, err, again, "it stays")
			})
		})
	}
}

func TestAnErrorOfTheBodyOfAWatchComesAsItIs(t *testing.T) {
	reset := errors.New("connection reset by peer")
	const frame = `{"type":"ADDED","object":{"a":1}}`
	for cut := range len(frame) + 1 {
		for _, cause := range []error{reset, io.ErrUnexpectedEOF} {
			_, err := readWatch(io.MultiReader(strings.NewReader(frame+frame[:cut]), iotest.ErrReader(cause)), limits)
			require.Equal(t, cause, err)
		}
	}
}

// Other servers than API servers indent their JSON, or copy an object into a frame as it was
// stored.
func TestLineBreaksBetweenTokensAreNoDamage(t *testing.T) {
	object := "{\n  \"a\": [\n{\"type\":\"x\"}\n,\r\n{\n}, [], [\n[1\n,2],{}]],\n\"b\" : {\n}\n,\"c\":\n{}\n}"
	body := strings.Repeat("{\n\"type\":\n\"ADDED\"\n,\"object\":"+object+"\n}\n", 3)
	arriving(t, body, func(t *testing.T, body io.Reader) {
		events, err := readWatch(body, limits)
		require.Equal(t, io.EOF, err)
		require.Equal(t, []event{{watch.Added, object}, {watch.Added, object}, {watch.Added, object}}, events)
	})
}

// Each body ends with a good frame. The watch must end before that, without an event for the
// damaged bytes.
func TestDamageEndsAWatchAtTheNextFrameAtTheLatest(t *testing.T) {
	const next = `{"type":"ADDED","object":{"b":"c"}}` + "\n"
	for name, test := range map[string]struct{ frame, text string }{
		"a quote too few":             {`{"type":"ADDED","object":{"a":"b}}`, "a line break in a string"},
		"a quote too many":            {`{"type":"ADDED","object":{"a"":"b"}}`, "a line break in a string"},
		"a quote too few in a name":   {`{"type":"ADDED","object:{"a":"b"}}`, "expected a colon"},
		"an escape too many":          {`{"type":"ADDED","object":{"a":"b\"}}`, "a line break in a string"},
		"an escape before the break":  {`{"type":"ADDED","object":{"a":"b}}\`, "a line break in a string"},
		"a bracket too many":          {`{"type":"ADDED","object":{"a":{"b"}}`, "expected a comma"},
		"two brackets too many":       {`{"type":"ADDED","object":{"a":{{"b"}}`, "an object or array after another value"},
		"three brackets too many":     {`{"type":"ADDED","object":{"a":[[[{"b":"c"}]}}`, "an object or array after another value"},
		"a bracket too few":           {`{"type":"ADDED","object":"a":"b"}}`, "expected a comma"},
		"a frame that ends too early": {`{"type":"ADDED","object":{"a":1},"b":2}}`, "got '}', expected the end of a watch frame"},
		"an array that does":          {`{"type":"ADDED","object":[1],"b":2}]`, "got ']', expected the end of a watch frame"},
	} {
		for how, body := range map[string]io.Reader{
			"at once":    strings.NewReader(test.frame + "\n" + next),
			"one by one": io.MultiReader(strings.NewReader(test.frame+"\n"), strings.NewReader(next), failOnRead{t}),
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				events, err := readWatch(body, limits)
				require.ErrorIs(t, err, wire.ErrMalformed)
				require.ErrorContains(t, err, test.text)
				require.Empty(t, events)
			})
		}
	}
}

// failOnRead is a body that must not be read.
type failOnRead struct{ t *testing.T }

func (f failOnRead) Read([]byte) (int, error) {
	f.t.Error("the next frame was read to its end, and more was asked for")
	return 0, io.EOF
}
