// Lookup shows how the objects of an informer are found without looking at all of
// them: by key, by namespace, and by the values that index functions give them.
//
//	go run ./examples/lookup
//
// The objects are of a Go type of the program's own, and nothing in it is cast.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// The indexes, by name.
const (
	byNode  = "node"
	byImage = "image"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run mirrors a few pods, looks some of them up, and ends.
func run(ctx context.Context, out io.Writer) error {
	source := cachetest.NewSource(cachetest.Options{NewObject: func() runtime.Object { return &Pod{} }})
	defer source.Close()
	if err := source.Apply(
		pod("shop", "web-0", "node-a", "nginx"),
		pod("shop", "web-1", "node-b", "nginx"),
		pod("shop", "db-0", "node-b", "postgres", "backup"),
		pod("lab", "web-0", "node-a", "nginx", "backup"),
		pod("lab", "job-0", ""),
	); err != nil {
		return err
	}
	pods := cache.NewInformerFor(source, cache.InformerConfig[*Pod]{
		Name: "pods",
		Indexes: cache.TypedIndexers[*Pod]{
			// An object may have one value, several, or none: then it is not in the index.
			byNode: func(pod *Pod) ([]string, error) {
				if pod.Node == "" {
					return nil, nil
				}
				return []string{pod.Node}, nil
			},
			byImage: func(pod *Pod) ([]string, error) { return pod.Images, nil },
		},
	})

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	err := pods.WaitSynced(ctx)
	if err == nil {
		err = lookUp(pods.Lister(), out)
	}
	cancel()
	return errors.Join(err, <-ended)
}

// lookUp asks for pods in every way there is. A lister alone is enough for it: who only
// reads need not be given the informer.
func lookUp(pods cache.TypedLister[*Pod], out io.Writer) error {
	// Of one key, and of one that does not exist.
	web, err := pods.Get("shop/web-0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "shop/web-0 runs on", web.Node)
	if _, err := pods.ByNamespace("shop").Get("web-9"); apierrors.IsNotFound(err) {
		fmt.Fprintln(out, err)
	}

	// A slice of those with a value in an index.
	onA, err := pods.ByIndex(byNode, "node-a")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "on node-a:", keysOf(onA))

	// The same, in one namespace only.
	inLab, err := pods.ByNamespace("lab").ByIndex(byImage, "backup")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "with a backup, in lab:", keysOf(inLab))

	// An iterator, which may be left early. The index may change meanwhile.
	backedUp, err := pods.AllByIndex(byImage, "backup")
	if err != nil {
		return err
	}
	count := 0
	for range backedUp {
		count++
	}
	fmt.Fprintln(out, "with a backup:", count)

	// Which values are there?
	images, err := pods.IndexValues(byImage)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "images:", strings.Join(slices.Sorted(slices.Values(images)), " "))

	// Everything, or a namespace of it, with keys or without.
	fmt.Fprintln(out, "keys:", strings.Join(slices.Sorted(maps.Keys(maps.Collect(pods.All()))), " "))
	for pod := range pods.ByNamespace("lab").Values() {
		if pod.Node == "" {
			fmt.Fprintln(out, "waits for a node:", pod.Name)
		}
	}

	// An index that does not exist is an error, not an empty answer.
	if _, err := pods.ByIndex("zone", "eu"); err != nil {
		fmt.Fprintln(out, "by zone: an error")
	}
	return nil
}

func keysOf(pods []*Pod) string {
	var keys []string
	for _, pod := range pods {
		keys = append(keys, cache.MetaObjectToName(pod).String())
	}
	slices.Sort(keys) // an index has no order
	return strings.Join(keys, " ")
}
