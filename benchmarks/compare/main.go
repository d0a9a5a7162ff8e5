// Compare measures this library beside client-go and prints a table: for each workload
// the goal, both figures, their ratio, and whether the goal is reached.
//
//	go run ./compare -only simple     # the calls that programs make first, in five minutes
//	go run ./compare                  # everything, at the scale of the goals: an hour
//	go run ./compare -short           # the stable figures, in some minutes; CI runs it
//	go run ./compare -short -record   # writes what it finds into recorded.json
//
// Servers and clients are processes of their own: the program starts itself again, with
// another role. The full form writes RESULTS.md. The program exits
// with 1 if a figure misses its goal by more than is tolerated: 10 % of a stable figure
// (memory, bytes, goroutines), 20 % of one of time. The short form judges stable figures
// only, by goal and record, and a line that fails is measured once more before it counts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/watchmirror/cache/benchmarks/client"
)

// What the program exits with.
const (
	exitReached = 0
	exitFailed  = 1 // a goal missed, or nothing measured
	exitUsage   = 2
)

func main() {
	client.PlayRole()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the flags.
type settings struct {
	short  bool
	only   selection
	passes int
	// arguments are those of the command.
	arguments []string
	// out is the document with the table, "" for none.
	out string
	// record writes the record, instead of comparing with it.
	record bool
}

// The files, as they are from where the program is run.
const (
	documentPath = "RESULTS.md"
	recordPath   = "recorded.json"
)

func parseSettings(arguments []string, stderr io.Writer) (settings, error) {
	s := settings{only: everything, arguments: arguments}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.short, "short", false, "a part of the workloads, and less of each: for CI")
	flags.Func("only", "measure the workloads with these `numbers` (B1,B18,H), or whose names match a regular expression", func(text string) (err error) {
		s.only, err = parseSelection(text)
		return err
	})
	flags.IntVar(&s.passes, "passes", 0, "`number` of passes of each side, if not the default")
	flags.StringVar(&s.out, "out", "", "write the table into a `document`; the default is "+documentPath+" for all workloads and none for a part")
	flags.BoolVar(&s.record, "record", false, "with -short: record what is found, instead of comparing it with the record")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if s.out == "" && !s.short && s.only.text == "" {
		s.out = documentPath
	}
	if flags.NArg() > 0 || s.passes < 0 || s.record && !s.short {
		flags.Usage()
		return s, errors.New("unknown arguments")
	}
	return s, nil
}

// scale is how much is measured.
func (s settings) scale() scale {
	if s.short {
		return shortScale
	}
	if s.only.simple {
		return simpleScale
	}
	return fullScale
}

// chosen are the workloads to measure.
func (s settings) chosen() []workload {
	var some []workload
	for _, w := range workloads(s.scale()) {
		if s.short && len(w.recordedFigures()) == 0 || !s.only.has(w) {
			continue
		}
		if l, ok := w.(line); ok && s.passes > 0 {
			l.passes = s.passes
			w = l
		}
		some = append(some, w)
	}
	return some
}

// run is the program without its process: it returns what to exit with.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	settings, err := parseSettings(arguments, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitReached
	}
	if err != nil {
		return exitUsage
	}
	if err := compare(ctx, settings, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return exitFailed
	}
	return exitReached
}

// errMissed says that the table has a FAIL.
var errMissed = errors.New("a goal is missed by more than is tolerated")

func compare(ctx context.Context, settings settings, stdout, stderr io.Writer) error {
	began := time.Now()
	workloads := settings.chosen()
	if len(workloads) == 0 {
		return fmt.Errorf("no workload matches %q", settings.only.text)
	}
	where := machine()
	fmt.Fprintln(stdout, strings.Join(where, "; "))
	report := report{short: settings.short}
	if settings.short && !settings.record {
		var err error
		if report.record, err = readRecord(recordPath); err != nil {
			return err
		}
	}
	for _, w := range workloads {
		err := report.take(stderr, w.title(), func() (measured, error) { return w.measure(ctx, stderr) })
		if err != nil {
			return errors.Join(err, report.print(stdout)) // what there is may have cost much time
		}
	}
	if err := report.print(stdout); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "measured in %s\n", time.Since(began).Round(time.Second))
	if err := settings.keep(&report, where); err != nil {
		return err
	}
	// The present figures are recorded, good or bad.
	if report.failed && !settings.record {
		return errMissed
	}
	return nil
}

// keep writes the figures of a report into the record. A record of some workloads leaves the others
// as they are.
func (s settings) keep(report *report, where []string) error {
	if s.out != "" {
		command := strings.Join(append([]string{"go run ./compare"}, s.arguments...), " ")
		if err := report.writeDocument(s.out, where, command); err != nil {
			return err
		}
	}
	if !s.record {
		return nil
	}
	kept := record{}
	if s.only.text != "" {
		var err error
		if kept, err = readRecord(recordPath); err != nil {
			return err
		}
	}
	maps.Copy(kept, report.found)
	return kept.write(recordPath)
}
