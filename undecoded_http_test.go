package cache

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// Package kubeapi does not import this one: that the two fit is seen here.
var (
	_ ItemLister = (*kubeapi.ListerWatcher)(nil)
	_ Undecoded  = (*kubeapi.UndecodedObject)(nil)
)

// wirePod is a pod as it is sent; one that is bad has a number that no decoder takes.
func wirePod(name, version string, isBad bool) string {
	value := "1"
	if isBad {
		value = "1e999"
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":%[1]q,"uid":%[1]q,"resourceVersion":%[2]q},"spec":{"x":%[3]s}}`,
		name, version, value)
}

// rawAPI answers lists and watches with what it was given. A watch is sent its events a
// second after it was opened, and then stays open.
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

// B6, G6, from the bytes on: what cannot be decoded, in a list or on a watch, is
// quarantined by name, and everything else is there. Fails if either side does not know
// what the other calls such an object.
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
		r := newRig(t, newSource(t), func(c *Config) {
			c.ListerWatcher, c.ObjectType, c.ReflectorOptions.Strategy = api, unstructuredPod("", "", ""), ListWhole
		})
		r.run()
		sleep(500 * time.Millisecond)
		assert.Equal(t, map[string]string{"a/1": "1", "a/3": "3"}, r.versions())
		assert.True(t, r.ctlr.HasSynced())
		assert.Equal(t, "10", r.ctlr.LastSyncResourceVersion())
		require.Len(t, r.status().Quarantined, 1)
		held := r.status().Quarantined[0]
		assert.Equal(t, Quarantined{Key: "a/2", ResourceVersion: "2", Stage: StageDecode, Err: held.Err}, held)
		assert.ErrorIs(t, held.Err, kubeapi.ErrMalformed)
		r.handler.take()

		sleep(5 * time.Second) // the first watch ends: what cannot be decoded may be damaged
		assert.Equal(t, map[string]string{"a/1": "1", "a/2": "13"}, r.versions())
		assert.Equal(t, "13", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, []string{"tombstone a/3", "add a/2@13"}, r.handler.take())
		require.Len(t, r.status().Quarantined, 1)
		assert.Equal(t, "a/1", r.status().Quarantined[0].Key)
		assert.Equal(t, []Cause{CauseObject, CauseUnreadable, CauseObject, CauseObject}, r.heard.causes())
		r.stop()
		server.Close()
	})
}
