package statuspage_test

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/statuspage"
)

// thing is an object with arbitrary text.
type thing struct{ Key, Text string }

// stated is a pipeline with any status.
type stated struct{ status cache.Status }

func (s stated) Status() cache.Status { return s.status }

// fill returns a registry that has text in every place where a page shows text from outside.
func fill(t *testing.T, name, key, text string) *statuspage.Registry {
	store := cache.NewStore(func(object any) (string, error) { return object.(thing).Key, nil })
	require.NoError(t, store.Add(thing{key, text}))
	failure := &cache.Failure{Cause: cache.Cause("other"), Err: errors.New(text), Time: time.Unix(0, 0)}
	one := cache.Status{
		Name: text, TypeDescription: text + ".", Phase: cache.PhasePaused, AppliedVersion: text + "1", ReceivedVersion: text + "2", LastFailure: failure,
		Quarantined: []cache.Quarantined{{Key: key, ResourceVersion: text, Stage: text, Err: errors.New(text)}},
		Handlers:    []cache.HandlerStatus{{Name: text}},
	}
	all := one
	one.Namespace = text
	all.Namespaces = []cache.Status{one}
	registry := &statuspage.Registry{}
	_, err := registry.AddWithStore(name, stated{all}, store)
	require.NoError(t, err)
	return registry
}

var (
	tag  = regexp.MustCompile(`<[/!]?[a-zA-Z]*`)
	link = regexp.MustCompile(`href="([^"]*)"`)
)

// structure returns the tags of a page and the number of its quotes, which text from outside must
// not change.
func structure(page string) (tags []string, quotes int) {
	return tag.FindAllString(page, -1), strings.Count(page, `"`)
}

// Fails if a name, key or value becomes a tag or attribute of a page, or if a link does not lead to
// its target.
func FuzzPages(f *testing.F) {
	f.Add("pods", "shop/web", "text")
	f.Add(`"><script>alert(1)</script>`, `<b>'"&`, "</style><script>")
	f.Add("a&key=b#c?d=%00+ ", "../../x;y\x00\xff\n", "{{.Name}} \u2028 ]]> --> javascript:alert(1)")
	f.Add("' onmouseover=alert(1) x='", "\"", "\\u003cscript\\u003e")
	f.Fuzz(func(t *testing.T, name, key, text string) {
		if name == "" || key == "" || text == "" {
			return
		}
		plainText := "t"
		if text == name {
			plainText = "n" // a cache that has the same name in the log has a line less
		}
		registry, plain := fill(t, name, key, text), fill(t, "n", "k", plainText)
		query := func(pairs ...string) string {
			values := url.Values{}
			for i := 0; i < len(pairs); i += 2 {
				values.Set(pairs[i], pairs[i+1])
			}
			return "?" + values.Encode()
		}
		for _, pages := range [][2]string{
			{"", ""},
			{query("name", name), "?name=n"},
			{query("name", name, "prefix", key), "?name=n&prefix=k"},
			{query("name", name, "key", key), "?name=n&key=k"},
			{query("name", text+"!"), "?name=none"},
		} {
			answer, want := get(registry, pages[0]), get(plain, pages[1])
			require.Equal(t, want.Code, answer.Code)
			tags, quotes := structure(answer.Body.String())
			wantTags, wantQuotes := structure(want.Body.String())
			assert.Equal(t, wantTags, tags)
			assert.Equal(t, wantQuotes, quotes)
			if pages[1] == "?name=n&prefix=k" {
				for _, to := range link.FindAllStringSubmatch(answer.Body.String(), -1) {
					assert.Equal(t, http.StatusOK, get(registry, html.UnescapeString(to[1])).Code, to[1])
				}
			}
		}
		if utf8.ValidString(key) {
			assert.Equal(t, key, getJSON(t, registry, query("name", name, "key", key))["key"])
		}
	})
}
