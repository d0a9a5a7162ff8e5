package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

// maxReruns is the number of failed tests above which none is run again.
const maxReruns = 10

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: rerun REPORT [flags and packages of go test]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1], os.Args[2:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rerun:", err)
		os.Exit(1)
	}
}

// run runs go test and its failed tests again. It returns nil if each test has passed once.
func run(ctx context.Context, report string, args []string, out io.Writer) error {
	first, err := goTest(ctx, args, out)
	if err == nil {
		return nil
	}
	failed, problem := first.repeatable()
	if problem != "" {
		return fmt.Errorf("not run again, because %s: %w", problem, err)
	}

	var flaky strings.Builder
	for _, t := range failed {
		fmt.Fprintf(out, "-- again: %s %s\n", t.pkg, t.name)
		if _, err := goTest(ctx, argsOf(t, args), out); err != nil {
			return fmt.Errorf("%s %s has failed twice: %w", t.pkg, t.name, err)
		}
		fmt.Fprintf(&flaky, "-- %s %s failed, and passed when it was run again:\n%s", t.pkg, t.name, t.output.String())
	}
	return appendTo(report, flaky.String())
}

// goTest runs go test and prints its output.
func goTest(ctx context.Context, args []string, out io.Writer) (*results, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	r := newResults(out, slices.Contains(args, "-v"))
	problem := r.read(events)
	if err := command.Wait(); err != nil {
		return r, fmt.Errorf("go test: %w", err)
	}
	return r, problem
}

// argsOf returns the arguments that run one test. Files that the first run has written stay.
func argsOf(t *test, args []string) []string {
	var kept []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		isReplaced := slices.Contains([]string{"-run", "-count", "-cover", "-coverpkg", "-coverprofile"}, name)
		isFlag := strings.HasPrefix(arg, "-")
		if isFlag && !isReplaced {
			kept = append(kept, arg)
		}
	}
	return append([]string{"-count=1", "-run=^" + t.name + "$", t.pkg}, kept...)
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text); err != nil {
		_ = file.Close() // the first error counts
		return err
	}
	return file.Close()
}
