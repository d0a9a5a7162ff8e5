package statuspage_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/footprint"
	"github.com/watchmirror/cache/statuspage"
)

// storeOf returns a store with an object that has the content in its field spec.
func storeOf(t *testing.T, kind string, content map[string]any) cache.Store {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	object := newObject(kind, "shop", "web")
	for name, value := range content {
		object.Object[name] = value
	}
	require.NoError(t, store.Add(object))
	return store
}

func reportOf(t *testing.T, registry *statuspage.Registry, name string) footprint.Report {
	answer := get(registry, "?format=json&memory&name="+name)
	require.Equal(t, http.StatusOK, answer.Code)
	var report footprint.Report
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &report))
	return report
}

func TestThePageOfMemoryShowsFieldsNamespacesAndLargestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		source := newSource(t, "Pod", 40)
		large := newObject("Pod", "shop", "large")
		large.Object["spec"] = map[string]any{"text": strings.Repeat("x", 100_000)}
		source.MustApply(t, large)
		pods := newInformer("of the informer", source)
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))

		assert.Contains(t, get(&registry, "?name=pods").Body.String(), `href="?memory=&amp;name=pods"`)
		answer := get(&registry, "?memory=&name=pods")
		assert.Equal(t, http.StatusOK, answer.Code)
		page := answer.Body.String()
		assert.Contains(t, page, "<h1>Memory of pods</h1>")
		assert.Contains(t, page, `<td class="name">spec.text</td>`)
		assert.Regexp(t, `<rect width="[6-9]\d\.\d" height="10"/>`, page)
		assert.Regexp(t, `<td class="name">search</td><td data-label="Objects" class="number">20</td>`, page)
		assert.Contains(t, page, `<a href="?key=shop%2Flarge&amp;name=pods">shop/large</a>`)
		assert.Contains(t, page, "*unstructured.Unstructured v1/Pod")
		assert.NotContains(t, page, "Not synced")
		_, largest, _ := strings.Cut(page, "Largest objects")
		assert.Contains(t, largest, `<rect width="100.0" height="10"/>`, "compared with the largest")
		assert.Contains(t, page, "A field includes the fields below it")

		report := reportOf(t, &registry, "pods")
		assert.Equal(t, "pods", report.Name)
		assert.Equal(t, 41, report.Objects)
		assert.Equal(t, "shop/large", report.Largest[0].Key)
	})
}

func TestThePageOfMemoryWorksForACacheWithoutObjectsOrStore(t *testing.T) {
	var registry statuspage.Registry
	add(t, &registry, "pods", newInformer("pods", newSource(t, "Pod", 0)))
	add(t, &registry, "reflector", &reported{})
	answer := get(&registry, "?name=pods&memory")
	assert.Equal(t, http.StatusOK, answer.Code)
	assert.Contains(t, answer.Body.String(), "There are no objects")
	assert.Zero(t, reportOf(t, &registry, "pods").Objects)
	answer = get(&registry, "?name=reflector&memory")
	assert.Equal(t, http.StatusNotFound, answer.Code)
	assert.Contains(t, answer.Body.String(), "use AddWithStore")
}

// Fails if the names below a field are shown whose content is not.
func TestThePageOfMemoryHidesTheNamesInWhatIsRedacted(t *testing.T) {
	registry := statuspage.Registry{Redact: []string{"/spec/*/token", "/spec/hidden"}}
	content := map[string]any{
		"data": map[string]any{"password-name": "c2VjcmV0"},
		"spec": map[string]any{
			"list":   []any{map[string]any{"token": map[string]any{"token-name": "x"}}},
			"hidden": map[string]any{"hidden-name": "x", "hidden.name": "x"},
			"shown":  map[string]any{"shown-name": "x"},
		},
	}
	_, err := registry.AddWithStore("secrets", &reported{}, storeOf(t, "Secret", content))
	require.NoError(t, err)
	_, err = registry.AddWithStore("settings", &reported{}, storeOf(t, "ConfigMap", content))
	require.NoError(t, err)

	secrets := get(&registry, "?name=secrets&memory").Body.String()
	settings := get(&registry, "?name=settings&memory").Body.String()
	for _, name := range []string{"token-name", "hidden-name", "hidden.name", "password-name"} {
		assert.NotContains(t, secrets, name)
		if name != "password-name" {
			assert.NotContains(t, settings, name)
		}
	}
	assert.Contains(t, settings, "password-name")
	assert.Contains(t, secrets, "shown-name")
	assert.Contains(t, secrets, `<td class="name">data</td>`)
}

func TestThePageOfMemoryHasNoLinksIfObjectsAreHidden(t *testing.T) {
	registry := statuspage.Registry{HideObjects: true}
	_, err := registry.AddWithStore("pods", &reported{}, storeOf(t, "Pod", nil))
	require.NoError(t, err)
	page := get(&registry, "?name=pods&memory").Body.String()
	assert.Contains(t, page, "shop/web")
	assert.NotContains(t, page, "key=shop")
}
