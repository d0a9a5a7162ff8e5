package jsonwire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

func TestIdentityIsReadOfAnObjectThatIsBrokenElsewhere(t *testing.T) {
	whole := wire.Identity{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Namespace: "shop", Name: "cart", UID: "u-1", ResourceVersion: "7"}
	const about = `"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"cart","uid":"u-1","resourceVersion":"7"}`
	for name, broken := range map[string]string{
		"nothing":                  `"spec":{}`,
		"a word":                   `"spec":{"a":nul}`,
		"a word at the top":        `"spec":tru`,
		"words at the top":         `"spec":tru e x`,
		"nothing at the top":       `"spec":`,
		"no colon":                 `"spec" {}`,
		"no name":                  `{}`,
		"two values":               `"spec":{} {}`,
		"a name that is no string": `spec:{}`,
		"an escape":                `"spec":{"a":"\x"}`,
		"an escape in a name":      `"\x":{"a":1}`,
		"a control character":      "\"spec\":\"\x01\"",
		"a number":                 `"spec":01`,
		"no comma":                 `"spec":{"a":1 "b":2}`,
		"too deep":                 `"spec":` + nested(100_000),
		"brackets of two kinds":    `"spec":{]`,
		"quotes and brackets":      `"spec":"}\\\"]{"`,
		"a second field":           `"status":{"metadata":{"name":"other"},"kind":"Other"}`,
		"blanks":                   " \"spec\" :\n{\t} ",
		"a comma":                  ``,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, whole, Encoding.Identify([]byte(`{`+about+`,`+broken+`}`)), "before it")
			require.Equal(t, whole, Encoding.Identify([]byte(`{`+broken+`,`+about+`}`)), "behind it")
			inside := strings.Replace(about, `"uid"`, broken+`,"uid"`, 1)
			require.Equal(t, whole, Encoding.Identify([]byte(`{`+inside+`}`)), "around it")
		})
	}
}

func TestWhatCannotBeReadOfAnIdentityIsEmpty(t *testing.T) {
	named := func(name string) wire.Identity { return wire.Identity{Name: name} }
	long := strings.Repeat("x", wire.MaxName)
	for name, test := range map[string]struct {
		raw  string
		want wire.Identity
	}{
		"nothing":                     {``, wire.Identity{}},
		"null":                        {`null`, wire.Identity{}},
		"a string":                    {`"name"`, wire.Identity{}},
		"an array":                    {`[{"kind":"Pod"}]`, wire.Identity{}},
		"a brace":                     {`{`, wire.Identity{}},
		"metadata a string":           {`{"metadata":"name"}`, wire.Identity{}},
		"metadata cut":                {`{"metadata":{"name":"a"`, wire.Identity{}},
		"other types":                 {`{"kind":5,"apiVersion":{},"metadata":{"name":["a"],"namespace":null,"uid":true,"resourceVersion":7}}`, wire.Identity{}},
		"a broken name":               {`{"kind":"Pod","metadata":{"name":"\x"}}`, wire.Identity{TypeMeta: metav1.TypeMeta{Kind: "Pod"}}},
		"cut behind the name":         {`{"metadata":{"name":"a"},"spec":{"a`, named("a")},
		"a namespace of another type": {`{"metadata":{"name":"a","namespace":5}}`, wire.Identity{Name: "a", NamespaceUnread: true}},
		"a broken namespace":          {`{"metadata":{"namespace":"\x","name":"a"}}`, wire.Identity{Name: "a", NamespaceUnread: true}},
		"a namespace that is no word": {`{"metadata":{"namespace":nul,"name":"a"}}`, wire.Identity{Name: "a", NamespaceUnread: true}},
		"a long namespace":            {`{"metadata":{"name":"a","namespace":"` + long + `x"}}`, wire.Identity{Name: "a", NamespaceUnread: true}},
		"a very long namespace":       {`{"metadata":{"name":"a","namespace":` + quoted(10*wire.MaxName) + `}}`, wire.Identity{Name: "a", NamespaceUnread: true}},
		"an empty namespace":          {`{"metadata":{"name":"a","namespace": "" }}`, named("a")},
		"a null namespace":            {`{"metadata":{"name":"a","namespace": null }}`, named("a")},
		"the last namespace counts":   {`{"metadata":{"name":"a","namespace":5,"namespace":"b"}}`, wire.Identity{Name: "a", Namespace: "b"}},
		"the last metadata count":     {`{"metadata":{"name":"a","namespace":5},"metadata":{"name":"a"}}`, named("a")},
		"a name with an escape":       {`{"metadata":{"n\u0061me":"\u0061"}}`, named("a")},
		"the last one counts":         {`{"metadata":{"name":"a"},"metadata":{"name":"b"}}`, named("b")},
		"as long as may be":           {`{"metadata":{"name":"` + long + `"}}`, named(long)},
		"in escapes":                  {`{"metadata":{"name":"` + strings.Repeat(`\u0078`, wire.MaxName) + `"}}`, named(long)},
		"longer":                      {`{"metadata":{"name":"` + long + `x"}}`, wire.Identity{}},
		"much longer":                 {`{"metadata":{"name":` + quoted(10*wire.MaxName) + `}}`, wire.Identity{}},
		"long when decoded":           {`{"metadata":{"name":"` + strings.Repeat("\xff", wire.MaxName/2) + `"}}`, wire.Identity{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Encoding.Identify([]byte(test.raw)))
		})
	}
}
