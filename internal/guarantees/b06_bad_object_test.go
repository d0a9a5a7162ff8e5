package guarantees

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// G6, B6: whatever fails for one object, on every path, it is quarantined by key and cause and
// reported once per version; the others are stored, synced becomes true, the version advances, and
// no list follows. Fails if an object's error ends a list, a watch or a write, or is reported at
// each relist.
func TestB6OneBadObjectIsQuarantinedAndDelaysNoOther(t *testing.T) {
	ways := map[string]func(obj any) error{
		"fails": func(obj any) error {
			if isBad(obj) {
				return errBoom
			}
			return nil
		},
		"panics": func(obj any) error {
			if isBad(obj) {
				panic(errBoom)
			}
			return nil
		},
	}
	for stage, install := range objectFailures {
		for way, fail := range ways {
			for name, list := range map[string]func(*cache.Config){
				"a list": func(*cache.Config) {}, "a list item by item": listByItem, "a streaming list": stream,
			} {
				t.Run(fmt.Sprintf("%s %s, in %s", stage, way, name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { checkBadObjectIsQuarantined(t, stage, install, fail, list) })
				})
			}
		}
	}
}

func checkBadObjectIsQuarantined(t *testing.T, stage string, install func(*cache.Config, func(any) error), fail func(any) error, list func(*cache.Config)) {
	source := newSource(t, pod("a", "1"), bad(pod("a", "2")), pod("b", "3"))
	r := newRig(t, source, func(c *cache.Config) {
		install(c, fail)
		list(c)
	})
	r.run()
	synctest.Wait()
	assert.Equal(t, map[string]string{"a/1": "1", "b/3": "3"}, r.versions())
	assert.True(t, r.ctlr.HasSynced())
	assert.Equal(t, "3", r.ctlr.LastSyncResourceVersion())
	require.Equal(t, []cache.Cause{causeOfStage(stage)}, r.errors.causes())
	var object *cache.ObjectError
	require.ErrorAs(t, r.errors.all()[0], &object)
	assert.Equal(t, "a/2", object.Key)
	assert.Equal(t, stage, object.Stage)
	assert.ErrorIs(t, object, errBoom)
	assert.Equal(t, 0, r.status().ConsecutiveFailures)
	require.Len(t, r.status().Quarantined, 1)
	assert.Equal(t, "a/2", r.status().Quarantined[0].Key)

	// A relist brings the same version: not reported again.
	source.BreakWatches(cachetest.ErrExpired())
	sleep(time.Minute)
	assert.Equal(t, 1, r.errors.count(causeOfStage(stage)))

	// An event: a good object turns bad, and its previous state stays.
	require.NoError(t, source.Apply(bad(pod("a", "1"))))
	synctest.Wait()
	assert.Equal(t, map[string]string{"a/1": "1", "b/3": "3"}, r.versions())
	assert.Equal(t, "4", r.ctlr.LastSyncResourceVersion(), "its version counts")
	requests := len(source.Requests())

	// It stays through a relist, too, though the list has only its bad state.
	// Without a key its previous state is unknown, and so removed.
	if stage != "key" {
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, map[string]string{"a/1": "1", "b/3": "3"}, r.versions())
		requests = len(source.Requests())
	}
	assert.Len(t, r.status().Quarantined, 2)

	// A good state is applied and releases the key; so does a deletion.
	require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
	_, err := source.Delete("a", "2")
	require.NoError(t, err)
	sleep(time.Minute)
	assert.Equal(t, requests, len(source.Requests()), "nothing is listed because of it")
	assert.Equal(t, map[string]string{"a/1": "5", "b/3": "3"}, r.versions())
	if stage == "key" { // the deletion has no key: only a list shows what was deleted
		require.Len(t, r.status().Quarantined, 1)
		assert.Equal(t, "a/2", r.status().Quarantined[0].Key)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
	}
	assert.Empty(t, r.status().Quarantined)
	r.stop()
}

// wirePod is an encoded pod; a bad one has a number that no decoder accepts.
func wirePod(name, version string, isBad bool) string {
	value := "1"
	if isBad {
		value = "1e999"
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":%[1]q,"uid":%[1]q,"resourceVersion":%[2]q},"spec":{"x":%[3]s}}`,
		name, version, value)
}

// rawAPI answers lists and watches with fixed bytes. A watch sends its events a second after
// it was opened, and then stays open.
type rawAPI struct{ list, events string }

func (a rawAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = io.WriteString(w, a.list)
		return
	}
	w.(http.Flusher).Flush()
	select {
	case <-time.After(time.Second):
		_, _ = io.WriteString(w, a.events)
		w.(http.Flusher).Flush()
	case <-r.Context().Done():
	}
	<-r.Context().Done()
}

// B6, G6, with encoded objects: an undecodable one, in a list or on a watch, is quarantined by
// name, and all others are stored. Fails if the library does not recognize kubeapi's undecodable
// objects.
func TestB6BytesThatCannotBeDecodedAreQuarantinedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := func(kind, name, version string, isBad bool) string {
			return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, wirePod(name, version, isBad))
		}
		server := cachetest.NewServer(rawAPI{
			list: fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[%s,%s,%s]}`,
				wirePod("1", "1", false), wirePod("2", "2", true), wirePod("3", "3", false)),
			events: event("MODIFIED", "1", "11", true) + event("DELETED", "3", "12", true) + event("MODIFIED", "2", "13", false),
		})
		api, err := kubeapi.New(kubeapi.Options{BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client()})
		require.NoError(t, err)
		r := newRig(t, newSource(t), func(c *cache.Config) {
			c.ListerWatcher, c.ObjectType, c.ReflectorOptions.Strategy = api, unstructuredPod("", "", ""), cache.ListUnpaged
		})
		r.run()
		sleep(500 * time.Millisecond)
		assert.Equal(t, map[string]string{"a/1": "1", "a/3": "3"}, r.versions())
		assert.True(t, r.ctlr.HasSynced())
		assert.Equal(t, "10", r.ctlr.LastSyncResourceVersion())
		require.Len(t, r.status().Quarantined, 1)
		held := r.status().Quarantined[0]
		assert.Equal(t, cache.Quarantined{Key: "a/2", ResourceVersion: "2", Stage: "decode", Err: held.Err}, held)
		assert.ErrorIs(t, held.Err, kubeapi.ErrMalformed)
		r.handler.take()

		sleep(5 * time.Second) // the first watch ends: what cannot be decoded may be damaged
		assert.Equal(t, map[string]string{"a/1": "1", "a/2": "13"}, r.versions())
		assert.Equal(t, "13", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, []string{"tombstone a/3", "add a/2@13"}, r.handler.take())
		require.Len(t, r.status().Quarantined, 1)
		assert.Equal(t, "a/1", r.status().Quarantined[0].Key)
		assert.Equal(t, []cache.Cause{causeInvalidObject, cache.CauseInvalidResponse, causeInvalidObject, causeInvalidObject}, r.errors.causes())
		r.stop()
		server.Close()
	})
}

// B6: a list with bad objects replaces a queue's content without them, and their known states stay.
// Fails if the first of them ends the list.
func TestB6AListWithBadObjectsIsQueuedWithoutThem(t *testing.T) {
	store := newTagStore()
	must(t, store.Add(podAt("a", "bad", "1")), store.Add(podAt("a", "deleted", "2")))
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KnownObjects: store, Transformer: func(obj any) (any, error) {
			if isBad(obj) {
				return nil, errBoom
			}
			return obj, nil
		},
	})
	err := f.Replace([]any{podAt("a", "1", "3"), nil, bad(podAt("a", "bad", "4")), pod("", ""), podAt("a", "2", "5")}, "5")
	require.ErrorContains(t, err, "key is empty")
	require.ErrorContains(t, err, "object is nil")
	require.ErrorIs(t, err, errBoom)
	assert.Equal(t, []string{"Sync a/1@3", "Sync a/2@5", "Deleted tombstone a/deleted @2"}, drainTexts(t, f))
	assert.True(t, f.HasSynced())
}
