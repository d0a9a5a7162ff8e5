// Command cmd applies the project's mutants one at a time and prints which of them the tests
// kill. Run it anywhere inside the module:
//
//	go run ./internal/mutants/cmd [-only regexp] [-j N] [-v] [-check]
//
// It prints a line for each mutant, and last "mutants: N of N killed in 182s" with the names of
// those that were not killed. It exits with 1 unless all were killed. With -check it runs no tests,
// and only prints which mutants do not apply or compile.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/watchmirror/cache/internal/mutants"
)

// options are the flags.
type options struct {
	only    string
	jobs    int
	verbose bool
	check   bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "",
		"try only mutants whose name, numbers, package, function or test match this regular `expression`")
	flag.IntVar(&o.jobs, "j", 2, "how many to try at once")
	flag.BoolVar(&o.verbose, "v", false,
		"print the fault and the end of the test's output of each mutant")
	flag.BoolVar(&o.check, "check", false,
		"run no tests: only find the code of each mutant and compile its package")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (ok bool, err error) {
	chosen, err := choose(o.only)
	if err != nil {
		return false, err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return false, err
	}
	runner := mutants.Runner{
		Root:   root,
		Jobs:   o.jobs,
		Report: func(r mutants.Result) { printResult(r, o.verbose) },
	}
	if o.check {
		return check(ctx, runner, chosen)
	}
	summary, err := runner.Run(ctx, chosen)
	if err != nil {
		return false, err
	}
	fmt.Println(summary)
	return summary.Total > 0 && summary.Killed == summary.Total, nil
}

func check(ctx context.Context, runner mutants.Runner, chosen []mutants.Mutant) (bool, error) {
	if err := runner.Check(ctx, chosen); err != nil {
		return false, err
	}
	fmt.Printf("mutants: %d apply and compile\n", len(chosen))
	return len(chosen) > 0, nil
}

// choose returns the mutants that match; all of them if only is empty.
func choose(only string) ([]mutants.Mutant, error) {
	matches, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var chosen []mutants.Mutant
	for _, m := range mutants.All() {
		about := append([]string{m.Name, m.Dir, m.In, m.Test}, m.Guards...)
		for _, text := range about {
			if matches.MatchString(text) {
				chosen = append(chosen, m)
				break
			}
		}
	}
	return chosen, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

func printResult(r mutants.Result, verbose bool) {
	m := r.Mutant
	where := m.In
	if r.Line > 0 {
		where = fmt.Sprintf("%s:%d", r.File, r.Line)
	}
	outcome := fmt.Sprintf("killed by %s (%s)", m.Test, r.How)
	if !r.Killed {
		outcome = fmt.Sprintf("NOT KILLED: %v (%s)", r.Err, m.Test)
	}
	fmt.Printf("%-8s %-50s %-32s %4.1fs  %s\n",
		strings.Join(m.Guards, ","), m.Name, where, r.Took.Seconds(), outcome)
	if verbose || !r.Killed {
		fmt.Printf("         %s\n", m.Fault)
		for line := range strings.Lines(r.Output) {
			fmt.Print("         | ", strings.TrimRight(line, "\n"), "\n")
		}
	}
}
