// Parts shows what an informer consists of, by building one: a Reflector, which lists and
// watches; a DeltaFIFO, the queue of what has changed; an Indexer, which readers look at;
// and the loop between the two, which is mirror.go:
//
//	go run ./examples/parts
//
// Most programs need none of this: NewInformerFor puts the same parts together.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run mirrors a source through a list, a watch, and a list after a gap.
func run(ctx context.Context, out io.Writer) error {
	source := cachetest.NewSource(cachetest.Options{NewObject: func() runtime.Object { return item("") }})
	defer source.Close()
	mirror := NewMirror("items", source, item(""), func(changes []Change, isInInitialList bool) {
		for _, change := range changes {
			fmt.Fprintln(out, " ", change.Kind, change.Key, initially(isInInitialList))
		}
	})
	if err := source.Apply(item("prices"), item("stock"), item("orders")); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	ended := make(chan error, 1)
	fmt.Fprintln(out, "the first list:")
	go func() { ended <- mirror.Run(ctx) }()
	err := show(ctx, out, source, mirror)
	cancel()
	return errors.Join(err, <-ended)
}

func show(ctx context.Context, out io.Writer, source *cachetest.Source, mirror *Mirror) error {
	if err := caughtUp(ctx, source, mirror, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "the watch:")
	if err := source.Apply(item("prices")); err != nil {
		return err
	}
	if _, err := source.Delete("shop", "stock"); err != nil {
		return err
	}
	if err := caughtUp(ctx, source, mirror, out); err != nil {
		return err
	}

	// What happens while nothing is watched, and is forgotten before anything is again,
	// a list must find. It brings one object more than has changed, which is left out.
	fmt.Fprintln(out, "a list after a gap:")
	source.Silence()
	if err := source.Apply(item("returns")); err != nil {
		return err
	}
	if _, err := source.Delete("shop", "orders"); err != nil {
		return err
	}
	source.CompactAll()
	source.CloseWatches()
	source.Heal()
	return caughtUp(ctx, source, mirror, out)
}

// caughtUp waits until the mirror has what the source has, and prints its keys.
func caughtUp(ctx context.Context, source *cachetest.Source, mirror *Mirror, out io.Writer) error {
	for mirror.LastStoreSyncResourceVersion() != source.ResourceVersion() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the mirror is at %q, the source at %q: %w",
				mirror.LastStoreSyncResourceVersion(), source.ResourceVersion(), context.Cause(ctx))
		}
	}
	keys, err := mirror.IndexKeys(cache.NamespaceIndex, "shop")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "  now:", strings.Join(slices.Sorted(slices.Values(keys)), " "))
	return nil
}

func initially(isInInitialList bool) string {
	if isInInitialList {
		return "(of the first list)"
	}
	return "(later)"
}

func item(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}
