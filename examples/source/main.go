// Source shows a source written by hand, for something that is no Kubernetes API: a directory of JSON files, one object
// each. The source is directory.go; its test runs the conformance suite on it. The program mirrors a temporary directory,
// changes its files and checks that the mirror has them:
//
//	go run ./examples/source
//
// docs/sources.md has the contract. Where a function that lists is enough, sources.NewPollingSource makes a source of it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

func main() {
	path, err := os.MkdirTemp("", "settings")
	if err == nil {
		err = errors.Join(run(context.Background(), path, os.Stdout), os.RemoveAll(path))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run mirrors an empty directory while it fills and changes it.
func run(ctx context.Context, path string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	informer := cache.NewTypedInformer(NewDirectory(path), cache.InformerConfig[*Setting]{
		ReflectorOptions: cache.ReflectorOptions{
			ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { fmt.Fprintln(out, "reported:", err) },
		},
	})
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, step := range []struct {
		what   string
		change func() error
	}{
		{"the first list", func() error {
			defer running.Go(func() { informer.Run(ctx) })
			return errors.Join(write(path, "colour", "red"), write(path, "size", "7"), write(path, "shape", "round"))
		}},
		{"the watch", func() error {
			return errors.Join(write(path, "size", "8"), write(path, "weight", "3"), os.Remove(filepath.Join(path, "shape.json")))
		}},
		{"more changes at once than the history has, and so a list", func() error {
			for i := range keptChanges + 1 {
				if err := write(path, fmt.Sprintf("many-%d", i), "1"); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		fmt.Fprintln(out, step.what+":")
		if err := step.change(); err != nil {
			return err
		}
		if err := caughtUp(ctx, informer, path); err != nil {
			return err
		}
		fmt.Fprintf(out, "  equals the directory, %d settings at version %s: %s\n",
			informer.Len(), informer.LastSyncResourceVersion(), few(contentOf(informer)))
	}
	return nil
}

// caughtUp waits until the mirror has what the files have.
func caughtUp(ctx context.Context, informer *cache.Informer[*Setting], path string) error {
	for {
		want, err := readAll(path)
		if err != nil || maps.Equal(contentOf(informer), want) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the mirror has %s, the directory %s: %w", few(contentOf(informer)), few(want), context.Cause(ctx))
		}
	}
}

func contentOf(informer *cache.Informer[*Setting]) map[string]string {
	content := map[string]string{}
	for _, setting := range informer.All() {
		content[setting.Name] = setting.Value
	}
	return content
}

// readAll reads the files without the source.
func readAll(path string) (map[string]string, error) {
	content := map[string]string{}
	files, err := filepath.Glob(filepath.Join(path, "*.json"))
	for _, file := range files {
		text, failed := os.ReadFile(file)
		setting := &Setting{}
		if err = errors.Join(err, failed); failed == nil {
			err = errors.Join(err, json.Unmarshal(text, setting))
		}
		content[strings.TrimSuffix(filepath.Base(file), ".json")] = setting.Value
	}
	return content, err
}

// few are the first settings.
func few(content map[string]string) string {
	names := slices.Sorted(maps.Keys(content))
	for i, name := range names {
		names[i] = name + "=" + content[name]
	}
	if len(names) > 4 {
		names = append(names[:4], "...")
	}
	return strings.Join(names, " ")
}

// write writes the file of a setting. It renames: no reader finds half of a file.
func write(path, name, value string) error {
	text, err := json.Marshal(&Setting{Value: value})
	if err != nil {
		return err
	}
	file := filepath.Join(path, name)
	return errors.Join(os.WriteFile(file+".new", text, 0o600), os.Rename(file+".new", file+".json"))
}

// Setting is the object of a file: prices.json is the setting prices.
type Setting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Value             string `json:"value"`
}

// DeepCopyObject implements runtime.Object.
func (s *Setting) DeepCopyObject() runtime.Object {
	copied := *s
	copied.ObjectMeta = *s.ObjectMeta.DeepCopy()
	return &copied
}
