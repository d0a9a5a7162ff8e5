package guarantees

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

// G3, G5: a handler that joins during a first list, while a user function is called for one of its
// objects, is notified of every object once. Fails if a write is published after the next call of a
// user function: of two writes published together, the handler's snapshot has only the first.
func TestG3AHandlerThatJoinsInTheMiddleOfAFirstListReceivesAllOfIt(t *testing.T) {
	const objects = 200
	for _, at := range []int{1, 2, 32, 33, 70, 97, 100, 101, objects} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pods []runtime.Object
				for i := range objects {
					pods = append(pods, pod("a", itoa(i)))
				}
				source, late, calls := newSource(t, pods...), newReplicaHandler(t), 0
				var inf cache.SharedIndexInformer
				inf = cache.NewSharedIndexInformer(source, &object{}, 0, cache.Indexers{"joins": func(any) ([]string, error) {
					if calls++; calls == at {
						_, err := inf.AddEventHandler(late)
						assert.NoError(t, err)
						time.Sleep(time.Millisecond) // it has joined
					}
					return nil, nil
				}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); inf.RunWithContext(ctx) }()
				sleep(time.Second)
				late.assertEqualsStore(inf.GetStore())
				assert.Equal(t, objects, late.callCount())
				cancel()
				<-done
				source.Close()
			})
		})
	}
}
