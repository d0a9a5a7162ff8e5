package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// slowAudience is told of one object each time something is sent to next.
type slowAudience struct {
	next chan struct{}
	told []string
}

func (s *slowAudience) hear(what, key string) {
	<-s.next
	s.told = append(s.told, what+" "+key)
}

func (s *slowAudience) OnAdd(object *unstructured.Unstructured, _ bool) { s.hear("add", keyOf(object)) }
func (s *slowAudience) OnUpdate(_, now *unstructured.Unstructured)      { s.hear("update", keyOf(now)) }
func (s *slowAudience) OnDelete(gone cache.DeletedObject[*unstructured.Unstructured]) {
	s.hear("delete", gone.GetKey())
}
func (s *slowAudience) failed(error) {}

// slowlyTold is a running mirror of two pods with an audience that has not been told of
// the second one yet.
func slowlyTold(t *testing.T) (*mirror, *slowAudience, *cachetest.Source) {
	t.Helper()
	source := cachetest.NewSource(cachetest.Options{})
	t.Cleanup(source.Close)
	require.NoError(t, source.Apply(simplePod("a", "one", "Running"), simplePod("a", "two", "Running")))
	slow := &slowAudience{next: make(chan struct{})}
	m, err := newMirror(source, "pods", 10, slow)
	require.NoError(t, err)
	m.start()
	t.Cleanup(m.stop)
	t.Cleanup(func() { close(slow.next) }) // the first to run: stop waits for the call
	slow.next <- struct{}{}
	synctest.Wait()
	return m, slow, source
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestTheFirstListIsOverWhenItIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, slow, _ := slowlyTold(t)
		require.Equal(t, 2, m.size())
		require.True(t, m.informer.HasSynced())
		require.False(t, isDone(m.synced()))
		slow.next <- struct{}{}
		synctest.Wait()
		require.True(t, isDone(m.synced()))
	})
}

// The mirror goes on while the audience is behind, and the status says how far.
func TestAVersionIsReachedWhenNoNotificationIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, slow, source := slowlyTold(t)
		_, err := source.Update(simplePod("a", "one", "Failed"))
		require.NoError(t, err)
		_, err = source.Delete("a", "two")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, m.size())
		require.Equal(t, source.ResourceVersion(), m.status().AppliedVersion)
		require.Contains(t, m.statusLine(), " · 2 not told yet")
		require.False(t, m.hasReached(source.ResourceVersion()))

		for range 3 {
			slow.next <- struct{}{}
		}
		ctx, cancel := contextFor(t, lookAgain)
		defer cancel()
		require.True(t, m.waitUntil(ctx, func() bool { return m.hasReached(source.ResourceVersion()) }))
		require.NotContains(t, m.statusLine(), "not told")
		synctest.Wait()
		require.ElementsMatch(t, []string{"add a/one", "add a/two"}, slow.told[:2])
		require.Equal(t, []string{"update a/one", "delete a/two"}, slow.told[2:])
	})
}

// Nothing the server did is missing in what was told when the show sums up.
func TestEveryChangeIsDeliveredBeforeTheShowSumsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printed, _ := demonstrated(t.Context(), t, demoLasts)
		number := func(pattern string) (sum int) {
			found := regexp.MustCompile(pattern).FindStringSubmatch(flowed(printed))
			require.NotEmpty(t, found, printed)
			for _, digits := range found[1:] {
				n, err := strconv.Atoi(digits)
				require.NoError(t, err)
				sum += n
			}
			return sum
		}
		changes := number(`mirror equals the source: \d+ objects, version (\d+)`) - number(`· watching from version (\d+)`)
		require.Equal(t, changes, number(`told: (\d+) added, (\d+) updated, (\d+) deleted`), printed)
	})
}

func TestADeletionWithoutAKnownStateIsDeliveredByItsKey(t *testing.T) {
	var out bytes.Buffer
	n := newNarrator(newDisplay(&out), "pods", nil)
	n.rememberDeletions()
	n.OnDelete(cache.DeletedObject[*unstructured.Unstructured]{
		FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "a/one"},
	})
	require.Regexp(t, `- a/one +gone, seen by a list`, out.String())
	require.Equal(t, tally{deleted: 1}, n.tally())
	require.False(t, n.deletedAfter("4", "a/one"), fmt.Sprint("when is not known: ", n.deleted))
}
