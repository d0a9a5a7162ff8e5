// Source shows a source written by hand, for something that is no Kubernetes API: a directory, each file of which is an object. The source is
// directory.go; its test runs the conformance suite on it. The program mirrors a temporary directory and changes its files:
//
//	go run ./examples/source
//
// docs/sources.md has the contract. Where a function that lists is enough, sources.NewPollingSource makes a source of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/watchmirror/cache"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run mirrors a directory, changes it, and waits until a handler has received each change.
func run(ctx context.Context, out io.Writer) error {
	path, err := os.MkdirTemp("", "files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(path)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	changes := make(chan string, 3)
	files := cache.NewTypedInformer(NewDirectory(path), cache.InformerConfig[*File]{})
	_, err = files.AddHandler(cache.TypedResourceEventHandlerFuncs[*File]{
		AddFunc:    func(file *File) { changes <- "added " + file.Name + ": " + file.Content },
		UpdateFunc: func(_, file *File) { changes <- "updated " + file.Name + ": " + file.Content },
		DeleteFunc: func(file cache.DeletedObject[*File]) { changes <- "deleted " + file.GetName() },
	})
	if err != nil {
		return err
	}
	ran := make(chan error, 1)
	go func() { ran <- files.Run(ctx) }()
	for _, content := range []string{"red", "blue", ""} {
		if err := write(path, "colour", content); err != nil {
			return err
		}
		select {
		case change := <-changes:
			fmt.Fprintln(out, change)
		case <-ctx.Done():
			return fmt.Errorf("content %q did not arrive: %v", content, files.Status())
		}
	}
	cancel()
	return <-ran
}

// write writes a file, by a rename so that no reader finds half of it, or removes it if content is empty.
func write(path, name, content string) error {
	if content == "" {
		return os.Remove(filepath.Join(path, name))
	}
	temporary := path + ".new"
	return errors.Join(os.WriteFile(temporary, []byte(content), 0o600), os.Rename(temporary, filepath.Join(path, name)))
}
