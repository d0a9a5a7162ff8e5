package jsonwire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

func TestListGivesItsItemsAsTheyStandInTheBodyAndItsHeader(t *testing.T) {
	const bare, strange = `{"metadata":{"name":"a"}}`, `{ "a":"}]\"{" , "b":[[],{}] }`
	count := int64(3)
	want := wire.Header{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "nä\"xt", RemainingItemCount: &count,
			ShardInfo: &metav1.ShardInfo{Selector: "0-7"}},
	}
	const head = `"kind":"PodList","apiVersion":"v1"`
	const metadata = `"metadata":{"resourceVersion":"42","continue":"n\u00e4\"xt","remainingItemCount":3,"selfLink":"/here","shardInfo":{"selector":"0-7"},"new":[{}]}`
	const items = `"items":[` + bare + `,` + strange + `]`
	for name, body := range map[string]string{
		"typed, as servers write them": `{` + head + `,` + metadata + `,` + items + `}`,
		"custom, as servers write":     `{` + items + `,` + head + `,` + metadata + `}` + "\n",
		"between":                      `{` + head + `,` + items + `,` + metadata + `}`,
		"with what nobody knows":       `{"a":null,` + items + `,"b":[{"items":[]}],` + head + `,"c":1.5,` + metadata + `,"d":"}","e":{}}`,
		"written to be read":           strings.ReplaceAll("{\r\n\t"+head+` , `+metadata+`,`+items+"\n}\n\n", `,"`, ",\n  \""),
		"names with escapes":           strings.NewReplacer(`"items":[{"m`, `"\u0069tems":[{"m`, `"kind":"P`, `"k\u0069nd":"P`).Replace(`{` + head + `,` + metadata + `,` + items + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			arriving(t, body, func(t *testing.T, body io.Reader) {
				list := readList(body, limits)
				require.Equal(t, io.EOF, list.err)
				require.Equal(t, want, list.header)
				require.Len(t, list.items, 2)
				require.Equal(t, bare, list.items[0])
				require.Equal(t, strings.ReplaceAll(strange, " ", ""), strings.Join(strings.Fields(list.items[1]), ""))
			})
		})
	}
}

func TestTheHeaderGrowsAsTheBodyIsRead(t *testing.T) {
	list := Encoding.List(iotest.OneByteReader(strings.NewReader(
		`{"kind":"PodList","items":[{"a":1},{"a":2}],"metadata":{"resourceVersion":"7"}}`)), limits)
	require.Empty(t, list.Header())
	raw, err := list.Next()
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, string(raw))
	require.Equal(t, "PodList", list.Header().Kind)
	_, err = list.Next()
	require.NoError(t, err)
	require.Empty(t, list.Header().ResourceVersion)
	_, err = list.Next()
	require.Equal(t, io.EOF, err)
	require.Equal(t, "7", list.Header().ResourceVersion)
	_, err = list.Next()
	require.Equal(t, io.EOF, err, "it stays")
}

func TestListsMayBeEmpty(t *testing.T) {
	for name, body := range map[string]string{
		"empty array":    `{"kind":"PodList","items":[]}`,
		"blanks within":  `{ "items" : [ ] }`,
		"null":           `{"kind":"PodList","items":null}`,
		"no items":       `{"kind":"PodList","metadata":{}}`,
		"no kind":        `{"items":[]}`,
		"metadata null":  `{"items":[],"metadata":null}`,
		"version null":   `{"items":[],"metadata":{"resourceVersion":null,"continue":null}}`,
		"types are none": `{"items":[],"kind":7,"apiVersion":[],"metadata":{"remainingItemCount":"3","selfLink":1,"shardInfo":2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			arriving(t, body, func(t *testing.T, body io.Reader) {
				list := readList(body, limits)
				require.Equal(t, io.EOF, list.err)
				require.Empty(t, list.items)
				list.header.Kind = ""
				require.Empty(t, list.header)
			})
		})
	}
}

// An item that cannot be decoded must not affect the others.
func TestAnItemMayBeAnyValue(t *testing.T) {
	for _, item := range []string{`null`, `5`, `-1.5e+7`, `"x"`, `"}\\"`, `[1,[2]]`, `nul`, `NaN`, `{"a":nul}`, `{"a":"\x"}`, "{\"a\":\"\x01\"}", `{"a" "b"}`, `{]`, nested(20_000)} {
		arriving(t, `{"items":[{},`+item+`,{"a":1}]}`, func(t *testing.T, body io.Reader) {
			list := readList(body, limits)
			require.Equal(t, io.EOF, list.err)
			require.Equal(t, []string{`{}`, item, `{"a":1}`}, list.items)
		})
	}
}

func TestAnObjectThatIsNoListIsAnErrorThatNamesItsType(t *testing.T) {
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Message: "too old", Reason: "Expired", Code: 410,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}
	for name, test := range map[string]struct {
		body string
		want wire.NotListError
	}{
		"Table":                  {`{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{},`, wire.NotListError{Kind: "Table"}},
		"Table, said late":       {`{"columnDefinitions":[],"items":[],"kind":"Table"`, wire.NotListError{Kind: "Table"}},
		"single object":          {`{"kind":"Pod","metadata":{"name":"a"}}`, wire.NotListError{Kind: "Pod"}},
		"object without kind":    {`{}`, wire.NotListError{}},
		"Status":                 {`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","details":{"retryAfterSeconds":3},"code":410}`, wire.NotListError{Kind: "Status", Status: status}},
		"Status, kind last":      {`{"apiVersion":"v1","code":410,"x":{},"details":{"retryAfterSeconds":3},"message":"too old","metadata":{},"reason":"Expired","status":"Failure","kind":"Status"} `, wire.NotListError{Kind: "Status", Status: status}},
		"successful Status":      {`{"kind":"Status","status":"Success"}`, wire.NotListError{Kind: "Status", Status: &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: "Success"}}},
		"Status that is broken":  {`{"kind":"Status","code":"x"}`, wire.NotListError{Kind: "Status"}},
		"array":                  {`[{}`, wire.NotListError{}},
		"string":                 {`"items"`, wire.NotListError{}},
		"number":                 {`17 `, wire.NotListError{}},
		"null":                   {`null`, wire.NotListError{}},
		"kind is hard to digest": {`{"kind":"` + strings.Repeat(`\u001b`, 9) + strings.Repeat("x", 1000) + `"}`, wire.NotListError{Kind: strings.Repeat("x", 503) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			arriving(t, test.body, func(t *testing.T, body io.Reader) {
				list := readList(body, limits)
				require.Equal(t, &test.want, list.err)
				require.Empty(t, list.items)
			})
		})
	}
}

func TestBrokenListsAreErrorsThatSayWhere(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want error
		text string
	}{
		"nothing":                   {``, io.ErrUnexpectedEOF, ""},
		"blanks":                    {" \n", io.ErrUnexpectedEOF, ""},
		"HTML":                      {`<html>`, wire.ErrMalformed, "got '<', expected a list"},
		"text":                      {`not found `, wire.ErrMalformed, "got 'n', expected a list"},
		"a word":                    {`not`, wire.ErrMalformed, "got 'n', expected a list"},
		"binary":                    {"\x00\x01", wire.ErrMalformed, `'\x00'`},
		"truncated at the start":    {`{`, io.ErrUnexpectedEOF, ""},
		"truncated in a name":       {`{"ki`, io.ErrUnexpectedEOF, ""},
		"truncated before a value":  {`{"kind":`, io.ErrUnexpectedEOF, ""},
		"truncated in a literal":    {`{"kind":nul`, io.ErrUnexpectedEOF, ""},
		"truncated before items":    {`{"items":`, io.ErrUnexpectedEOF, ""},
		"truncated between items":   {`{"items":[{},`, io.ErrUnexpectedEOF, ""},
		"truncated in an item":      {`{"items":[{},{"a":`, io.ErrUnexpectedEOF, ""},
		"truncated in a string":     {`{"items":[{},{"a":"x\`, io.ErrUnexpectedEOF, ""},
		"truncated after the items": {`{"kind":"PodList","items":[{}]`, io.ErrUnexpectedEOF, ""},
		"two lists":                 {`{"items":[]}{"items":[]}`, wire.ErrMalformed, "continues"},
		"rubbish behind it":         {`{"items":[]}` + "\n}", wire.ErrMalformed, "continues"},
		"comma behind the items":    {`{"items":[{},]}`, wire.ErrMalformed, "got ']', expected a value"},
		"comma before the items":    {`{"items":[,{}]}`, wire.ErrMalformed, "got ',', expected a value"},
		"no comma between":          {`{"items":[{}{}]}`, wire.ErrMalformed, "got '{', expected a comma"},
		"comma at the start":        {`{,"items":[]}`, wire.ErrMalformed, "got ',', expected the name"},
		"comma at the end":          {`{"items":[],}`, wire.ErrMalformed, "got '}', expected the name"},
		"no comma between fields":   {`{"items":[] "kind":"x"}`, wire.ErrMalformed, `got '"', expected a comma`},
		"no colon":                  {`{"items",[]}`, wire.ErrMalformed, "got ',', expected a colon"},
		"no value":                  {`{"items":}`, wire.ErrMalformed, "got '}', expected a value"},
		"number as a name":          {`{1:2}`, wire.ErrMalformed, "got '1', expected the name"},
		"items no array":            {`{"items":{}}`, wire.ErrMalformed, "items is not an array"},
		"items a wrong word":        {`{"items":nul}`, wire.ErrMalformed, "items is not an array"},
		"items twice":               {`{"items":[{}],"items":[]}`, wire.ErrMalformed, "duplicate field items"},
		"items twice, one null":     {`{"items":null,"items":[]}`, wire.ErrMalformed, "duplicate field items"},
		"metadata twice":            {`{"metadata":{},"metadata":{},"items":[]}`, wire.ErrMalformed, "duplicate field metadata"},
		"kind twice":                {`{"kind":"A","k\u0069nd":"A","items":[]}`, wire.ErrMalformed, "duplicate field kind"},
		"kind is no JSON":           {`{"kind":PodList,"items":[]}`, wire.ErrMalformed, "kind: "},
		"metadata no object":        {`{"items":[],"metadata":"x"}`, wire.ErrMalformed, "metadata is not an object"},
		"metadata is no JSON":       {`{"items":[],"metadata":{"resourceVersion":"7" "continue":"x"}}`, wire.ErrMalformed, "metadata: "},
		"version a number":          {`{"items":[],"metadata":{"resourceVersion":7}}`, wire.ErrMalformed, "metadata.resourceVersion is not a string"},
		"continue a number":         {`{"items":[],"metadata":{"continue":7}}`, wire.ErrMalformed, "metadata.continue is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			arriving(t, test.body, func(t *testing.T, body io.Reader) {
				list := readList(body, limits)
				require.ErrorIs(t, list.err, test.want)
				require.ErrorContains(t, list.err, test.text)
				require.NotErrorIs(t, list.err, io.EOF, "that would be a good end")
			})
		})
	}
}

func TestAnErrorOfTheBodyIsReturnedUnchangedByAllLaterCalls(t *testing.T) {
	reset := errors.New("connection reset by peer")
	whole := `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"a":1},{"a":2}]}` + "\n"
	for cut := range len(whole) + 1 {
		list := Encoding.List(io.MultiReader(strings.NewReader(whole[:cut]), iotest.ErrReader(reset)), limits)
		items := 0
		_, err := list.Next()
		for ; err == nil; _, err = list.Next() {
			items++
		}
		require.Equal(t, reset, err)
		require.Equal(t, strings.Count(whole[:cut], `"a":1}`)+strings.Count(whole[:cut], `"a":2}`), items)
		_, err = list.Next()
		require.Equal(t, reset, err)
	}
}

func TestNothingIsReadBeforeTheFirstNext(t *testing.T) {
	body := iotest.ErrReader(errors.New("read"))
	Encoding.List(body, limits).Header()
	Encoding.Watch(body, limits)
}
