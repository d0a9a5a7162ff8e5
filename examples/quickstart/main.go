// Quickstart shows a mirror at work: a remote collection of objects, kept equal in
// memory, with indexes over it.
//
//	go run ./examples/quickstart
//
// needs no network and no arguments. It starts a small Kubernetes-style API on
// loopback, full of pods that come, change and go; lists it page by page into an
// indexed store; prints each change as the mirror learns of it; cuts every
// connection in the middle and lets you see how the mirror takes that; and ends
// by comparing the mirror with the API, object by object and index by index. It
// exits with 0 if they are equal.
//
//	go run ./examples/quickstart -server http://127.0.0.1:8001 -resource pods
//
// does the same to a real API server (here behind kubectl proxy), which it only
// reads. -help lists the flags.
//
// The part to copy into a program of your own is mirror.go. The others, by what
// they hold: settings.go the flags, demo.go and remote.go the two shows,
// demo_server.go the API on loopback, loopback.go its network, fleet.go and pods.go
// what it serves, requests.go the mirror's requests, trial.go when to give up on a
// server, advice.go what to do then, check.go the comparison, and narrator.go,
// change.go, table.go, display.go and text.go what is printed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
)

// What the program exits with.
const (
	exitEqual       = 0
	exitFailed      = 1 // the mirror differs, or there is nothing to mirror
	exitUsage       = 2
	exitInterrupted = 130 // what shells expect of a program that Ctrl-C ended
)

// errInterrupted says that Ctrl-C came before there was anything to check.
var errInterrupted = errors.New("interrupted before the first list was complete and the first watch open")

func main() {
	// The mirror's failures are printed by the error handler, in their place. What
	// the library logs besides would be printed across the display.
	klog.SetLogger(klog.Logger{})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C ends the show, and the final check still runs. The second
	// one finds no handler and ends the process.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program without its process: it returns what to exit with.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	settings, err := parseSettings(args, stdout, stderr)
	if errors.Is(err, errHelp) {
		return exitEqual
	}
	if err != nil {
		return exitUsage
	}
	show := newDisplay(stdout)
	if settings.server != "" {
		err = mirrorRemote(ctx, settings, show)
	} else {
		err = mirrorLoopback(ctx, settings, show)
	}
	show.flush()
	if err == nil {
		return exitEqual
	}
	fmt.Fprintln(stderr, "quickstart:", printableLines(err.Error()))
	if errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	return exitFailed
}

// mirrorLoopback is the demonstration over a socket.
func mirrorLoopback(ctx context.Context, settings settings, show *display) error {
	network, err := listenOnLoopback()
	if err != nil {
		return fmt.Errorf("no port on loopback for the demonstration: %w", err)
	}
	return demonstrate(ctx, settings, network, show)
}
