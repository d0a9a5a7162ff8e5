package statuspage_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

// Fails if a number of the status is missing from the overview, in either form.
func TestTheOverviewShowsAllCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		pods, nodes := newInformer("pods", newSource(t, "Pod", 30)), newSource(t, "Node", 0)
		nodes.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		failing := newInformer("nodes", nodes)
		add(t, &registry, "pods", pods)
		add(t, &registry, "nodes", failing)
		defer start(t, running(pods))()
		defer start(t, running(failing))()
		time.Sleep(time.Minute)
		synctest.Wait()

		page := get(&registry, "").Body.String()
		for _, text := range []string{
			`<p class="summary bad">1 of 2 caches has a problem</p>`,
			`<a href="?name=nodes">nodes</a>`, `<span class="badge bad">retrying</span>`,
			`<td data-label="Last failure" class="cause"><span class="bad">connection-refused</span></td>`,
			"<td data-label=\"Failing for\"><span class=\"bad\">60\u00a0s</span></td>", `started `,
			`<a href="?name=pods">pods</a>`, `<span class="badge ok">watching</span>`, `<td data-label="Objects" class="number">30</td>`,
		} {
			assert.Contains(t, page, text)
		}
		caches := getJSON(t, &registry, "")["caches"].([]any)
		require.Len(t, caches, 2)
		first, second := caches[0].(map[string]any), caches[1].(map[string]any)
		assert.Equal(t, "nodes", first["name"])
		assert.Equal(t, "retrying", first["activity"])
		assert.Equal(t, "paused", first["status"].(map[string]any)["phase"])
		assert.Equal(t, "connection-refused", first["status"].(map[string]any)["lastFailure"].(map[string]any)["cause"])
		assert.Equal(t, "watching", second["status"].(map[string]any)["phase"])
		assert.InDelta(t, 30, second["objects"], 0)
	})
}

// Fails if the page or the JSON form lacks the checksum, the failures by cause or the version that
// a handler was notified of.
func TestThePageOfACacheShowsChecksumFailuresAndNotifiedVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		source := newSource(t, "Pod", 3)
		source.FailWatches(2, cachetest.ErrConnectionRefused())
		pods := newInformer("pods", source)
		_, err := pods.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{}, cache.HandlerOptions{Name: "queue"})
		require.NoError(t, err)
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		time.Sleep(time.Minute)
		source.BreakWatches(cachetest.ErrExpired())
		time.Sleep(time.Minute)
		synctest.Wait()

		checksum := pods.Status().Checksum
		require.NotZero(t, checksum)
		page := get(&registry, "?name=pods").Body.String()
		for _, text := range []string{
			fmt.Sprintf(`<dt>Checksum</dt><dd>%d</dd>`, checksum), `<dt>Objects</dt><dd>3</dd>`,
			"<dt>Failures by cause</dt><dd>connection-refused\u00a02, expired\u00a01</dd>",
			`<td data-label="Notified version" class="wrap">3</td>`,
		} {
			assert.Contains(t, page, text)
		}
		status := getJSON(t, &registry, "?name=pods")["status"].(map[string]any)
		assert.Equal(t, fmt.Sprint(checksum), status["checksum"])
		assert.Equal(t, map[string]any{"connection-refused": 2.0, "expired": 1.0}, status["failures"])
		assert.Equal(t, "3", status["handlers"].([]any)[0].(map[string]any)["notifiedVersion"])
	})
}

// Fails if Run samples at another interval, or if a rate is not that between two samples.
func TestRunSamplesEventsAndBacklogEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, source := &statuspage.Registry{}, newSource(t, "Pod", 0)
		pods := newInformer("pods", source)
		slow := make(chan struct{})
		_, err := pods.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{})
		require.NoError(t, err)
		_, err = pods.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{AddFunc: func(object) { <-slow }})
		require.NoError(t, err)
		add(t, registry, "pods", pods)
		defer start(t, running(pods))()
		defer close(slow)
		synctest.Wait()
		defer start(t, registry.Run)()
		time.Sleep(time.Second / 2)
		for i := range 4 {
			for j := range i {
				source.MustApply(t, newObject("Pod", "shop", fmt.Sprint(i, "-", j)))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		type sample struct{ EventsPerSecond, Backlog, StalenessSeconds *float64 }
		var page struct{ Samples []sample }
		require.NoError(t, json.Unmarshal(get(registry, "?name=pods&format=json").Body.Bytes(), &page))
		var events, backlog []float64
		for _, s := range page.Samples {
			events, backlog = append(events, *s.EventsPerSecond), append(backlog, *s.Backlog)
		}
		assert.Equal(t, []float64{0, 1, 2, 3}, events)
		assert.Equal(t, []float64{0, 0, 2, 5}, backlog) // without the change that the slow handler is processing
		assert.Contains(t, get(registry, "?name=pods").Body.String(), `aria-label="Backlog: 5 now, at most 5"`)
	})
}

// Fails if the staleness is not the time since the last proof, or if the last list and the next
// attempt are not shown.
func TestStalenessGrowsUntilTheSourceShowsThatTheCacheIsCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		source := newSource(t, "Pod", 3)
		pods := newInformer("pods", source)
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))
		synctest.Wait()
		defer start(t, registry.Run)()
		time.Sleep(2500 * time.Millisecond)
		source.MustApply(t, newObject("Pod", "shop", "new"))
		time.Sleep(time.Second)
		var staleness []any
		for _, sample := range getJSON(t, &registry, "?name=pods")["samples"].([]any) {
			staleness = append(staleness, sample.(map[string]any)["stalenessSeconds"])
		}
		assert.Equal(t, []any{1.0, 2.0, 0.5}, staleness)
		page := get(&registry, "?name=pods").Body.String()
		assert.Contains(t, page, "<dt>Staleness</dt><dd>1.0\u00a0s</dd>")
		assert.Contains(t, page, "<dt>Applied</dt><dd>3.5\u00a0s ago</dd>")
		assert.Contains(t, page, "<dt>Strategy</dt><dd>streaming</dd>")
		assert.Contains(t, page, "<dt>Reason</dt><dd>the source streams its state</dd>")
		assert.NotContains(t, page, "Next attempt")

		failing := newSource(t, "Node", 0)
		failing.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		nodes := newInformer("nodes", failing)
		add(t, &registry, "nodes", nodes)
		defer start(t, running(nodes))()
		time.Sleep(10 * time.Second)
		assert.Contains(t, get(&registry, "?name=nodes").Body.String(), "<dt>Next attempt</dt><dd>in\u00a0")
	})
}

// Fails if a request samples although Run does, or does not sample although nothing else does.
func TestWithoutRunRequestsSampleAtMostOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		add(t, &registry, "pods", newInformer("pods", newSource(t, "Pod", 0)))
		for range 10 {
			get(&registry, "?name=pods")
			time.Sleep(250 * time.Millisecond)
		}
		assert.Len(t, getJSON(t, &registry, "?name=pods")["samples"], 2) // the differences of 3 statuses
	})
}

// Fails if a change is missing from the history or appears twice, or if the oldest are not dropped.
func TestTheHistoryHasEachChangeOfStateOnceNewestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry, source := statuspage.Registry{Interval: 10 * time.Millisecond}, newSource(t, "Pod", 3)
		source.FailRequests(2, cachetest.ErrConnectionRefused())
		pods := newInformer("pods", source)
		add(t, &registry, "pods", pods)
		ranRegistry := start(t, registry.Run)
		time.Sleep(90*time.Second + 5*time.Millisecond) // between two samples
		stop := start(t, running(pods))
		time.Sleep(90 * time.Second)
		stop()
		time.Sleep(90 * time.Second)
		ranRegistry()
		var rows []string
		history := getJSON(t, &registry, "?name=pods")["history"].([]any)
		assert.Equal(t, pods.Status().PhaseSince.Format(time.RFC3339Nano), history[0].(map[string]any)["time"])
		for _, change := range history {
			c := change.(map[string]any)
			text := fmt.Sprint(c["activity"], " ", c["synced"])
			if c["cause"] != nil {
				text += fmt.Sprint(" ", c["count"], " ", c["cause"])
			}
			rows = append(rows, text)
		}
		assert.Equal(t, []string{
			"stopped true", "watching true", "retrying false 2 connection-refused", "retrying false", "not started false",
		}, rows)
	})
}

// Equal failures are one row. Fails if those between two samples are lost.
func TestEqualFailuresAreOneRowWithTheirCountAndTimeSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := statuspage.Registry{}
		// Without streaming lists, or the first failure may have another text than the others.
		source := cachetest.NewTestSource(t, cachetest.Options{WatchListUnsupported: true})
		source.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		pods := newInformer("pods", source)
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		defer start(t, registry.Run)()
		time.Sleep(10*time.Minute + time.Millisecond)

		status := pods.Status()
		history := getJSON(t, &registry, "?name=pods")["history"].([]any)
		var failures []map[string]any
		for _, change := range history {
			if row := change.(map[string]any); row["cause"] != nil {
				failures = append(failures, row)
			}
		}
		require.Len(t, failures, 1)
		assert.InDelta(t, status.Failures[cache.CauseConnectionRefused], failures[0]["count"], 0)
		assert.Equal(t, status.FailingSince.Format(time.RFC3339Nano), failures[0]["time"])
		assert.Equal(t, status.LastFailure.Time.Format(time.RFC3339Nano), failures[0]["last"])
		page := get(&registry, "?name=pods").Body.String()
		assert.Contains(t, page, "<h2>Present problems</h2><p><b>Retrying for 10\u00a0min: connection-refused</b></p>")
		assert.Contains(t, page, "<dt>State</dt><dd>retrying for 10\u00a0min</dd>")
		assert.Equal(t, "retrying", getJSON(t, &registry, "?name=pods")["activity"])
		assert.NotContains(t, page, "Past failure")

		source.Heal()
		time.Sleep(time.Minute)
		page = get(&registry, "?name=pods").Body.String()
		assert.NotContains(t, page, "Present problems")
		assert.Contains(t, page, "Past failure, ")
	})
}

// Several failures of a second have only the text of the newest, but all are counted.
func TestFailuresBetweenTwoSamplesAreCounted(t *testing.T) {
	store := &reported{cache.Status{Phase: cache.PhaseWatching, Synced: true}}
	var registry statuspage.Registry
	add(t, &registry, "pods", store)
	get(&registry, "?name=pods")
	store.status.Failures = map[cache.Cause]int64{cache.CauseForbidden: 3, cache.CauseConnectionLost: 2}
	store.status.LastFailure = &cache.Failure{Cause: cache.CauseForbidden, Err: errors.New("no"), Time: time.Now()}
	registry.Interval = time.Nanosecond
	counts := map[any]any{}
	for _, change := range getJSON(t, &registry, "?name=pods")["history"].([]any) {
		counts[change.(map[string]any)["cause"]] = change.(map[string]any)["count"]
	}
	assert.Equal(t, map[any]any{"forbidden": 3.0, "connection-lost": 2.0, nil: nil}, counts)
}

type reported struct{ status cache.Status }

func (r *reported) Status() cache.Status { return r.status }

func TestACacheWithAProblemIsListedFirst(t *testing.T) {
	var registry statuspage.Registry
	assert.Contains(t, get(&registry, "").Body.String(), "No cache was added. Call <code>registry.Add(")
	for name, phase := range map[string]cache.Phase{
		"a": cache.PhaseWatching, "b": cache.PhaseListing, "c": cache.PhaseIdle, "d": cache.PhaseStopped,
	} {
		add(t, &registry, name, &reported{cache.Status{Phase: phase}})
	}
	var names []string
	for _, one := range getJSON(t, &registry, "")["caches"].([]any) {
		names = append(names, one.(map[string]any)["name"].(string))
	}
	assert.Equal(t, []string{"c", "d", "a", "b"}, names)
	page := get(&registry, "").Body.String()
	assert.Contains(t, page, "2 of 4 caches have a problem")
	assert.Contains(t, page, "Run was not called")
	assert.Contains(t, get(&registry, "?name=c").Body.String(), "<b>Run was not called</b>")
}

// Fails if an error page leaves out the cache or the key, or does not link back.
func TestAnErrorPageNamesTheCacheAndTheKeyAndLinksBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		pods := newInformer("pods", newSource(t, "Pod", 1))
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		synctest.Wait()
		page := get(&registry, "?name=pods&key=shop/none").Body.String()
		assert.Contains(t, page, "There is no object under this key: shop/none")
		assert.Contains(t, page, `<a href="?name=pods">pods</a>`)
		page = get(&registry, "?name=none").Body.String()
		assert.Contains(t, page, "There is no cache of this name: none")
		assert.Contains(t, page, `<a href="?">All caches</a>`)
	})
}

// Fails if the namespaces of an informer are combined in the status or the history.
func TestEachNamespaceHasARowAndAHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		search := newSource(t, "Pod", 0)
		search.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		pods := cache.NewTypedInformer(nil, cache.InformerConfig[object]{
			Name: "pods", Namespaces: map[string]cache.Source{"shop": newSource(t, "Pod", 1), "search": search},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(context.Context, *cache.Reflector, error) {}},
		})
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		time.Sleep(time.Minute)
		synctest.Wait()
		getJSON(t, &registry, "?name=pods")
		time.Sleep(time.Second)
		page := getJSON(t, &registry, "?name=pods") // a second sample of the same states
		rows, history := page["status"].(map[string]any)["namespaces"].([]any), page["history"].([]any)
		require.Len(t, rows, 2)
		changes := map[any]int{}
		for _, change := range history {
			changes[change.(map[string]any)["namespace"]]++
		}
		assert.Equal(t, 1, changes["shop"])
		assert.Equal(t, 2, changes["search"], "the state and its failures")
		for i, namespace := range []string{"search", "shop"} {
			assert.Equal(t, namespace, rows[i].(map[string]any)["namespace"])
		}
		assert.Contains(t, get(&registry, "?name=pods").Body.String(), "search: retrying")
	})
}

// Fails if the key, stage or error of a quarantined object, or a handler's panic, is not shown.
func TestQuarantinedObjectsAndPanicsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		pods := cache.NewTypedInformer(newSource(t, "Pod", 2), cache.InformerConfig[object]{Name: "pods",
			Transform: func(o object) (object, error) {
				if o.GetName() == "web-0001" {
					return nil, fmt.Errorf("no <owner>")
				}
				return o, nil
			}})
		_, err := pods.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{AddFunc: func(object) { panic("<b>") }},
			cache.HandlerOptions{Name: "panics", RecoverPanics: true})
		require.NoError(t, err)
		add(t, &registry, "pods", pods)
		defer start(t, func(ctx context.Context) { _ = pods.Run(klog.NewContext(ctx, klog.Logger{})) })()
		synctest.Wait()
		page := get(&registry, "?name=pods").Body.String()
		assert.Contains(t, page, `<td class="name"><a href="?key=search%2Fweb-0001&amp;name=pods">search/web-0001</a></td>`)
		assert.Contains(t, page, "no &lt;owner&gt;")
		assert.Contains(t, page, `<td data-label="Panics" class="number"><span class="bad">1</span></td>`)
	})
}

// Fails if a key is on no page or on two, or if a page is not sorted.
func TestKeysAreShownByPrefixPageAfterPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		pods := newInformer("pods", newSource(t, "Pod", 9_000))
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))
		var seen []string
		query, pages := "?name=pods&prefix=shop/web-&format=json", 0
		for after := ""; pages < 50; pages++ {
			var page struct {
				Keys  []string
				Count int
				Next  string
			}
			require.NoError(t, json.Unmarshal(get(&registry, query+after).Body.Bytes(), &page))
			assert.Equal(t, 4_500, page.Count)
			seen = append(seen, page.Keys...)
			if page.Next == "" {
				break
			}
			after = "&after=" + page.Next
		}
		require.Len(t, seen, 4_500)
		assert.Equal(t, 22, pages)
		for i, key := range seen {
			assert.Equal(t, fmt.Sprintf("shop/web-%04d", 2*i), key)
		}
		assert.Contains(t, get(&registry, "?name=pods&prefix=search/").Body.String(), `<a href="?after=search%2Fweb-0399&amp;name=pods&amp;part=&amp;prefix=search%2F">Next keys</a>`)
		assert.Contains(t, get(&registry, "?name=pods&part=web-777").Body.String(), `10 keys contain web-777`)
		assert.Contains(t, get(&registry, "?name=pods&prefix=none").Body.String(), `0 keys begin with none`)
	})
}

// Fails if a link of the page of keys does not lead to the object, or if the object is not the
// stored one.
func TestAnObjectIsShownByItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		pods := newInformer("pods", newSource(t, "Pod", 4))
		add(t, &registry, "pods", pods)
		defer start(t, running(pods))()
		synctest.Wait()
		links := regexp.MustCompile(`<li><a href="([^"]*)">([^<]*)<`).FindAllStringSubmatch(get(&registry, "?name=pods&prefix=").Body.String(), -1)
		require.Len(t, links, 4)
		for _, link := range links {
			answer := getJSON(t, &registry, html.UnescapeString(link[1]))
			assert.Equal(t, link[2], answer["key"])
			stored, _ := pods.Lookup(link[2])
			assert.Equal(t, stored.GetName(), answer["object"].(map[string]any)["metadata"].(map[string]any)["name"])
			assert.Equal(t, pods.ResourceVersion(), answer["appliedVersion"])
		}
		answer := get(&registry, "?name=pods&key=shop/none")
		assert.Equal(t, http.StatusNotFound, answer.Code)
		assert.Contains(t, answer.Body.String(), "There is no object under this key: shop/none")
	})
}

// Fails if a registry that hides objects shows one.
func TestObjectsAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := &statuspage.Registry{HideObjects: true}
		pods := newInformer("pods", newSource(t, "Pod", 1))
		add(t, registry, "pods", pods)
		defer start(t, running(pods))()
		synctest.Wait()
		assert.Equal(t, http.StatusForbidden, get(registry, "?name=pods&key=shop/web-0000").Code)
		assert.Contains(t, get(registry, "?name=pods&prefix=").Body.String(), "<li>shop/web-0000</li>")
	})
}

// Fails if a pipeline other than a typed informer cannot be added, or if its objects are not found.
func TestReflectorsControllersAndUntypedInformersAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var registry statuspage.Registry
		source, store := newSource(t, "Pod", 2), cache.NewStore(cache.MetaNamespaceKeyFunc)
		shared := cache.NewSharedIndexInformer(source, newObject("Pod", "", "example"), 0, nil)
		reflector := cache.NewReflector(source, newObject("Pod", "", "example"), store, 0)
		controller := cache.New(&cache.Config{ListerWatcher: source, ObjectType: newObject("Pod", "", "example"), Store: cache.NewStore(cache.MetaNamespaceKeyFunc)})
		add(t, &registry, "shared", shared)
		add(t, &registry, "controller", controller)
		remove, err := registry.AddWithStore("reflector", reflector, store)
		require.NoError(t, err)
		defer start(t, shared.RunWithContext)()
		defer start(t, controller.RunWithContext)()
		defer start(t, reflector.RunWithContext)()
		synctest.Wait()
		for _, name := range []string{"shared", "reflector"} {
			assert.InDelta(t, 2, getJSON(t, &registry, "?name="+name)["objects"], 0)
			assert.InDelta(t, 2, getJSON(t, &registry, "?name="+name+"&prefix=")["count"], 0)
		}
		assert.NotContains(t, getJSON(t, &registry, "?name=controller"), "objects")
		for _, query := range []string{"?name=controller&prefix=", "?name=controller&key=a"} {
			assert.Contains(t, get(&registry, query).Body.String(), "The store of this cache was not added")
		}
		remove()
		assert.Equal(t, http.StatusNotFound, get(&registry, "?name=reflector").Code)
	})
}

func TestANameIsAddedOnceAndOnlyWhatHasAStatus(t *testing.T) {
	var registry statuspage.Registry
	source := newSource(t, "Pod", 0)
	pods := newInformer("pods", source)
	remove := add(t, &registry, "pods", pods)
	_, err := registry.Add("pods", pods)
	require.EqualError(t, err, `add "pods" to a status page: the name is in use`)
	remove()
	add(t, &registry, "pods", pods)
	remove() // that of the first, which removes nothing of the second
	assert.Equal(t, http.StatusOK, get(&registry, "?name=pods").Code)
	_, err = registry.Add("", pods)
	require.ErrorContains(t, err, "the name is empty")
	_, err = registry.Add("source", source)
	require.EqualError(t, err, `add "source" to a status page: *cachetest.Source has no method Status() cache.Status`)
}

func TestOnlyGetAndHeadAreAnswered(t *testing.T) {
	var registry statuspage.Registry
	add(t, &registry, "pods", newInformer("pods", newSource(t, "Pod", 0)))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		assert.Equal(t, http.StatusOK, ask(&registry, method, "", "").Code)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodTrace, "LIST"} {
		answer := ask(&registry, method, "", "")
		assert.Equal(t, http.StatusMethodNotAllowed, answer.Code)
		assert.Equal(t, "GET, HEAD", answer.Header().Get("Allow"))
	}
	assert.Equal(t, http.StatusNotFound, get(&registry, "?name=none").Code)
	assert.Equal(t, http.StatusBadRequest, get(&registry, "?name=%zz").Code)
}

// Fails if a page has a style, script or resource that its policy does not permit, or if a response
// has no policy.
func TestEveryAnswerHasAPolicyThatPermitsItsStyleAlone(t *testing.T) {
	var registry statuspage.Registry
	add(t, &registry, "pods", newInformer("pods", newSource(t, "Pod", 0)))
	for _, query := range []string{"", "?name=pods", "?name=pods&prefix=", "?name=none", "?format=json", "?name=pods&key=none"} {
		answer := get(&registry, query)
		policy := answer.Header().Get("Content-Security-Policy")
		assert.Regexp(t, `^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$`, policy)
		assert.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
		assert.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
		for _, absent := range []string{"<script", "<link", "<img", "style=", "http:", "https:", "url("} {
			assert.NotContains(t, answer.Body.String(), absent)
		}
		if style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(answer.Body.String()); style != nil {
			assert.Contains(t, policy, "'sha256-"+sha256Of(style[1])+"'")
		} else {
			assert.Contains(t, query, "json")
		}
	}
}

func TestTheFormOfTheAnswerIsThatOfTheQueryOrOfAccept(t *testing.T) {
	var registry statuspage.Registry
	for _, row := range []struct{ query, accept, want string }{
		{"", "", "text/html; charset=utf-8"},
		{"", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"},
		{"", "application/json", "application/json"},
		{"", "text/html, application/json", "text/html; charset=utf-8"},
		{"?format=html", "application/json", "text/html; charset=utf-8"},
		{"?format=json", "text/html", "application/json"},
		{"?name=none", "application/json", "application/json"},
	} {
		assert.Equal(t, row.want, ask(&registry, http.MethodGet, row.query, row.accept).Header().Get("Content-Type"), row)
	}
	assert.Equal(t, "5", get(&registry, "?refresh=5").Header().Get("Refresh"))
	for _, no := range []string{"0", "-1", "99999", "1;url=//x", ""} {
		assert.Empty(t, get(&registry, "?refresh="+strings.ReplaceAll(no, ";", "%3B")).Header().Get("Refresh"))
	}
}

func sha256Of(text string) string {
	hash := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(hash[:])
}

func TestTheObjectPageOfAQuarantinedKeyShowsTheQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "Pod", 1)
		bad := false
		informer := cache.NewTypedInformer(source, cache.InformerConfig[object]{
			Transform: func(obj object) (object, error) {
				if bad {
					return nil, errors.New("it has <no> node")
				}
				return obj, nil
			},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(context.Context, *cache.Reflector, error) {}},
		})
		var registry statuspage.Registry
		add(t, &registry, "pods", informer)
		stop := start(t, running(informer))
		require.NoError(t, informer.WaitSynced(t.Context()))
		earlier := newObject("Pod", "shop", "earlier")
		source.MustApply(t, earlier)
		synctest.Wait()
		bad = true
		source.MustApply(t, newObject("Pod", "shop", "only"))
		earlier.SetLabels(map[string]string{"new": "yes"})
		source.MustApply(t, earlier)
		synctest.Wait()
		for key, hasState := range map[string]bool{"shop/only": false, "shop/earlier": true} {
			response := get(&registry, "?name=pods&key="+key)
			assert.Equal(t, http.StatusOK, response.Code, key)
			assert.Contains(t, response.Body.String(), "quarantined")
			assert.Contains(t, response.Body.String(), "it has &lt;no&gt; node")
			assert.Equal(t, hasState, strings.Contains(response.Body.String(), "An earlier state"))
			answer := getJSON(t, &registry, "?name=pods&format=json&key="+key)
			assert.Equal(t, "transform", answer["quarantined"].(map[string]any)["stage"])
			assert.Equal(t, hasState, answer["object"] != nil)
		}
		assert.Equal(t, http.StatusNotFound, get(&registry, "?name=pods&key=shop/none").Code)
		for query, found := range map[string]any{"prefix=": []any{"shop/only"}, "part=onl": []any{"shop/only"}, "prefix=shop/e": nil} {
			answer := getJSON(t, &registry, "?name=pods&format=json&"+query)
			assert.Equal(t, found, answer["quarantined"], query)
			page := get(&registry, "?name=pods&"+query).Body.String()
			assert.Equal(t, found != nil, strings.Contains(page, "Quarantined, without an earlier state"), query)
			assert.Equal(t, found != nil, strings.Contains(page, ">shop/only</a>"), query)
		}
		stop()
	})
}

func TestTheJSONHasNoControlCharacters(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	obj := newObject("Pod", "shop", "x")
	note := "\u0000\u001b[1m\u007f\u0080\u009b2J\u009f\u00a0 ä"
	obj.SetAnnotations(map[string]string{"note": note})
	require.NoError(t, store.Add(obj))
	var registry statuspage.Registry
	_, err := registry.AddWithStore("pods\u0085", cache.NewReflector(newSource(t, "Pod", 0), obj, store, 0), store)
	require.NoError(t, err)
	for _, query := range []string{"?format=json&name=pods%C2%85", "?format=json", "?format=json&name=pods%C2%85&key=shop/x"} {
		text := get(&registry, query).Body.String()
		assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }), query)
	}
	answer := getJSON(t, &registry, "?format=json&name=pods%C2%85&key=shop/x")
	assert.Equal(t, note, answer["object"].(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)["note"])
}
