// Compare measures this library beside client-go and prints tables: for each workload the goal,
// both figures, their ratio, and whether the goal is reached.
//
//	go run ./compare -only simple     # the calls that programs make first, in five minutes
//	go run ./compare                  # everything, at the scale of the goals: an hour
//	go run ./compare -short           # the stable figures, in some minutes; CI runs it
//	go run ./compare -short -record   # writes what it finds into recorded.json
//
// Clients are processes of their own: the program starts itself again. The full form writes
// RESULTS.md. The program exits with 1 if a figure misses its goal by more than is tolerated: 10 %
// of a stable figure (memory, bytes, goroutines), 20 % of one of time. The short form compares
// stable figures with those that are recorded, and a workload that fails is measured once more
// before it counts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	// record writes the record, instead of comparing with it.
	record bool
	// command is the whole command.
	command string
}

// The files, as they are from where the program is run.
const (
	documentPath = "RESULTS.md"
	recordPath   = "recorded.json"
)

// documentBegins is what the document says of itself.
const documentBegins = `# Results

` + "`make compare`" + ` writes this page as a whole. [README.md](README.md) says what each line measures and what a figure means.

`

func parseSettings(arguments []string, stderr io.Writer) (settings, error) {
	command := append([]string{"go run ./compare"}, arguments...)
	s := settings{only: everything, command: strings.Join(command, " ")}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.short, "short", false, "a part of the workloads, and less of each: for CI")
	const only = "measure the workloads with these `numbers` (B1,B18,H), or whose names match " +
		"a regular expression"
	flags.Func("only", only, func(text string) (err error) {
		s.only, err = parseSelection(text)
		return err
	})
	flags.IntVar(&s.passes, "passes", 0, "`number` of passes of each side, if not the default")
	const record = "with -short: record what is found, instead of comparing it with the record"
	flags.BoolVar(&s.record, "record", false, record)
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if flags.NArg() > 0 || s.passes < 0 || s.record && !s.short {
		flags.Usage()
		return s, errors.New("unknown arguments")
	}
	return s, nil
}

// writesDocument reports whether all is measured, at the scale of the goals.
func (s settings) writesDocument() bool { return !s.short && s.only.text == "" }

// scale is how much is measured.
func (s settings) scale() scale {
	scale := fullScale
	if s.only.simple {
		scale = simpleScale
	}
	if s.short {
		scale = shortScale
	}
	scale.allPasses = s.passes
	return scale
}

// chosen are the workloads to measure.
func (s settings) chosen() []workload {
	var some []workload
	for _, w := range workloads(s.scale()) {
		if s.only.has(w) && (w.isShort() || !s.short) {
			some = append(some, w)
		}
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
	if err := settings.compare(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return exitFailed
	}
	return exitReached
}

// errMissed says that a table has a FAIL.
var errMissed = errors.New("a goal is missed by more than is tolerated")

func (s settings) compare(ctx context.Context, stdout, stderr io.Writer) error {
	began := time.Now()
	workloads := s.chosen()
	if len(workloads) == 0 {
		return fmt.Errorf("no workload matches %q", s.only.text)
	}
	recorded, err := s.readRecord()
	if err != nil {
		return err
	}
	report := report{}
	if s.short && !s.record {
		report.record = recorded
	}
	for _, w := range workloads {
		if err := report.measure(ctx, w, stderr); err != nil {
			fmt.Fprint(stdout, report.tables()) // what there is may have cost much time
			return err
		}
	}
	took := time.Since(began).Round(time.Second)
	text := fmt.Sprintf("%s\nMeasured with `%s` in %s. %s.\n%s",
		report.conclusion(), s.command, took, machine(), report.tables())
	fmt.Fprint(stdout, text)
	if s.writesDocument() {
		if err := os.WriteFile(documentPath, []byte(documentBegins+text), 0o644); err != nil {
			return err
		}
	}
	if s.record {
		// The present figures are recorded, good or bad.
		report.keep(recorded)
		return recorded.write(recordPath)
	}
	if report.failed {
		return errMissed
	}
	return nil
}

// readRecord reads what figures are compared with, or added to: nothing in the full form, or if all
// are recorded anew.
func (s settings) readRecord() (record, error) {
	if !s.short || s.record && s.only.text == "" {
		return record{}, nil
	}
	return readRecord(recordPath)
}
