package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// elsewhere is a server that is not the demonstration's own, in virtual time.
type elsewhere struct {
	*cachetest.Server
	source *cachetest.Source
}

func startElsewhere(t *testing.T, token string, objects ...*unstructured.Unstructured) *elsewhere {
	t.Helper()
	source := cachetest.NewSource(cachetest.Options{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}})
	for _, object := range objects {
		require.NoError(t, source.Apply(object))
	}
	server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: source}},
		Token:     token,
	}))
	return &elsewhere{Server: server, source: source}
}

func (e *elsewhere) close() {
	e.source.Close()
	e.Close()
}

// mirrored runs the show with the server and returns what was printed and how long
// it took.
func (e *elsewhere) mirrored(ctx context.Context, change func(*settings)) (printed string, took time.Duration, err error) {
	s := settings{server: e.URL, resource: pods, lasts: 10 * time.Second}
	if change != nil {
		change(&s)
	}
	var out bytes.Buffer
	show := newDisplay(&out)
	err = mirrorThrough(ctx, s, e.Client(), show)
	show.flush()
	return out.String(), time.Since(show.started), err
}

func simplePod(namespace, name, phase string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"status":     map[string]any{"phase": phase},
	}}
}

func TestAServerElsewhereIsMirroredAndComparedWithOneMoreList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"), simplePod("b", "two", "Pending"))
		defer e.close()
		time.AfterFunc(3*time.Second, func() {
			_, _ = e.source.Update(simplePod("b", "two", "Running"))
			_, _ = e.source.Delete("a", "one")
		})
		printed, took, err := e.mirrored(t.Context(), nil)
		require.NoError(t, err, printed)
		require.Equal(t, 10*time.Second, took)
		require.Contains(t, printed, "Pending → Running")
		require.Regexp(t, `- a/one +deleted`, printed)
		require.Contains(t, printed, "mirror equals the source: 1 objects, version 4")
		require.Equal(t, 2, e.source.ListCalls(), "the mirror's list and the one to compare with")
	})
}

func TestUntilInterruptedMeansUntilInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		printed, took, err := e.mirrored(ctx, func(s *settings) { s.lasts = 0 })
		require.NoError(t, err, printed)
		require.Equal(t, 3*time.Minute, took)
		require.Contains(t, printed, "mirror equals the source: 1 objects")
	})
}

func TestATokenOpensTheServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "sesame", simplePod("a", "one", "Running"))
		defer e.close()
		printed, took, err := e.mirrored(t.Context(), nil)
		require.ErrorContains(t, err, "it wants a login (401)", printed)
		require.Zero(t, took)

		_, _, err = e.mirrored(t.Context(), func(s *settings) { s.tokenFile = file })
		require.NoError(t, err)
	})
}

func TestNamespaceAndSelectorLimitTheMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wanted, other := simplePod("a", "one", "Running"), simplePod("a", "two", "Running")
		wanted.SetLabels(map[string]string{"app": "web"})
		e := startElsewhere(t, "", wanted, other, simplePod("b", "three", "Running"))
		defer e.close()
		printed, _, err := e.mirrored(t.Context(), func(s *settings) { s.namespace, s.selector = "a", "app=web" })
		require.NoError(t, err, printed)
		require.Contains(t, printed, "mirror equals the source: 1 objects")
	})
}

func TestAnUnknownResourceIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "")
		defer e.close()
		_, took, err := e.mirrored(t.Context(), func(s *settings) { s.resource.Resource = "pots" })
		require.ErrorContains(t, err, "cannot mirror pots")
		require.ErrorContains(t, err, "404")
		require.Zero(t, took)
	})
}

func TestAServerThatSaysNothingIsGivenUpAfter10Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "")
		defer e.close()
		e.source.HangLists(cachetest.Forever)
		_, took, err := e.mirrored(t.Context(), nil)
		require.ErrorContains(t, err, "sent nothing for 10s")
		require.Equal(t, maxSilence, took)
	})
}

// A slow first list is not a silent one: each page is a sign of life.
func TestASlowFirstListIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []*unstructured.Unstructured
		for range 2 * remotePageSize {
			objects = append(objects, simplePod("a", "", "Running"))
			objects[len(objects)-1].SetName("pod-" + string(randomName(newRandom(uint64(len(objects))), 9)))
		}
		e := startElsewhere(t, "", objects...)
		defer e.close()
		e.source.DelayLists(8 * time.Second)
		printed, _, err := e.mirrored(t.Context(), nil)
		require.NoError(t, err, printed)
		require.Contains(t, printed, "mirror equals the source: 1000 objects")
	})
}

func TestAServerThatFailsIsGivenUpAfterThreeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "")
		defer e.close()
		e.source.FailLists(cachetest.Forever, nil)
		_, took, err := e.mirrored(t.Context(), nil)
		require.ErrorContains(t, err, "does not answer as it should")
		require.Equal(t, maxFailures, e.source.ListCalls())
		require.Less(t, took, maxSilence)
	})
}

func TestAServerThatRecoversInTimeIsMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.FailLists(2, nil)
		printed, _, err := e.mirrored(t.Context(), nil)
		require.NoError(t, err, printed)
		require.Contains(t, printed, `cause "internal-error"`)
	})
}

// An event of an object that no list shows makes the mirror differ. The check must
// say so, also after its further attempts.
func TestTheFinalCheckFindsAnObjectThatTheSourceDoesNotHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		time.AfterFunc(3*time.Second, func() {
			ghost := simplePod("a", "ghost", "Running")
			ghost.SetResourceVersion("1")
			ghost.SetUID("ghost")
			e.source.Inject(watch.Event{Type: watch.Added, Object: ghost})
		})
		printed, _, err := e.mirrored(t.Context(), nil)
		require.ErrorContains(t, err, "mirror and source differ:\n  a/ghost: version 1 is in the mirror, not in the source", printed)
		require.Equal(t, 1+checks, e.source.ListCalls())
	})
}

// A mirror that has stopped hearing must not pass for one that is merely behind.
func TestTheFinalCheckFindsAMirrorThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Pending"))
		defer e.close()
		time.AfterFunc(3*time.Second, func() {
			e.source.Silence()
			_, _ = e.source.Update(simplePod("a", "one", "Running"))
		})
		_, _, err := e.mirrored(t.Context(), nil)
		require.ErrorContains(t, err, "a/one: version 1 in the mirror, 2 in the source")
	})
}

// What changes between the list and the comparison is no difference.
func TestTheFinalCheckKnowsChangesThatCameAfterItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Pending"), simplePod("a", "two", "Running"))
		defer e.close()
		listed := 0
		e.source.MangleList(func(list runtimeObject) runtimeObject {
			if listed++; listed == 2 {
				_, _ = e.source.Update(simplePod("a", "one", "Running"))
				_, _ = e.source.Delete("a", "two")
				_, _ = e.source.Create(simplePod("a", "three", "Running"))
				time.Sleep(time.Second) // the mirror hears of it before the list arrives
			}
			return list
		})
		printed, _, err := e.mirrored(t.Context(), nil)
		require.NoError(t, err, printed)
		require.Contains(t, printed, "mirror equals the source: 2 objects, version 2 (3 newer than it)")
		require.Equal(t, 2, e.source.ListCalls())
	})
}
