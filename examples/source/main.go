// Source shows a hand-written source of something other than a Kubernetes API: each file of a
// directory is an object. The source is in directory.go; its test runs the conformance suite on it.
// The program mirrors a temporary directory and changes its files:
//
//	go run ./examples/source
//
// docs/sources.md has the contract. If there is only a function that lists, use
// sources.NewPollingSource.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/watchmirror/cache"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run mirrors a directory, writes a file and removes it. Fresh waits until the mirror has each
// change.
func run(ctx context.Context, out io.Writer) (err error) {
	path, err := os.MkdirTemp("", "files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(path)
	files := cache.NewTypedInformer(&Directory{Path: path}, cache.InformerConfig[*File]{})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	ran := make(chan error, 1)
	go func() { ran <- files.Run(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ran)
	}()
	if err := files.WaitSynced(ctx); err != nil {
		return err
	}
	colour := path + "/colour"
	for _, content := range []string{"red", "blue"} {
		if err := errors.Join(os.WriteFile(colour, []byte(content), 0o600), files.Fresh(ctx)); err != nil {
			return err
		}
		for name, file := range files.All() {
			fmt.Fprintln(out, name, "is", file.Content)
		}
	}
	if err := errors.Join(os.Remove(colour), files.Fresh(ctx)); err != nil {
		return err
	}
	fmt.Fprintln(out, "files left:", files.Len())
	return nil
}
