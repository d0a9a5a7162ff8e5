package kubeapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A server may send more damaged frames than this package remembers. Fails if forgotten frames end
// the watch repeatedly, so that later events are never received.
func TestAWatchOfAnyNumberOfDamagedFramesIsReadToItsEnd(t *testing.T) {
	for _, frames := range []int{maxSuspects, maxSuspects + 1, 5 * maxSuspects} {
		t.Run(fmt.Sprint(frames), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var body strings.Builder
				for i := range frames {
					fmt.Fprintf(
						&body,
						`{"type":"MODIFIED","object":{"metadata":{"name":"bad-%d"},"spec":0%d}}`+"\n",
						i, i)
				}
				body.WriteString(frameJSON("MODIFIED", podJSON("good", 8)))
				source := newSource(
					t,
					server(
						func(*http.Request) (*http.Response, error) { return newResponse(200, textBody(body.String())), nil },
					),
				)
				for watches := 1; ; watches++ {
					require.LessOrEqual(
						t, watches, 20*maxSuspects, "the stream is never read to its end")
					passed, broken := eventsOf(t, source)
					if broken {
						continue
					}
					require.Equal(t, min(frames, maxSuspects)+1, watches)
					require.Len(t, passed, frames+1)
					require.Equal(t, "good", nameOf(t, passed[frames].Object))
					return
				}
			})
		})
	}
}

// eventsOf returns the events of a watch, and whether it ended with a bad frame.
func eventsOf(t *testing.T, source *ListerWatcher) (events []watch.Event, broken bool) {
	w, err := source.Watch(metav1.ListOptions{ResourceVersion: "7"})
	require.NoError(t, err)
	defer w.Stop()
	for event := range w.ResultChan() {
		if status, ok := event.Object.(*metav1.Status); ok {
			require.Equal(t, CauseBadFrame, status.Details.Causes[0].Type)
			return events, true
		}
		events = append(events, event)
	}
	return events, false
}
