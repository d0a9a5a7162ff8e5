// Compare measures this library beside client-go and prints a table: for each workload
// the goal, both figures, their ratio, and whether the goal is reached.
//
//	go run ./compare          # everything, at the scale of the goals: half an hour
//	go run ./compare -short   # two minutes on two cores, three if others use them; what CI runs
//
// Servers and clients are processes of their own: the program starts itself again, with
// another role. It exits with 1 if a figure misses its goal by more than is tolerated:
// 10 % of a stable figure (memory, bytes, goroutines), 20 % of one of CPU.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/watchmirror/cache/benchmarks/apiserver"
	"github.com/watchmirror/cache/benchmarks/client"
)

// What the program exits with.
const (
	exitReached = 0
	exitFailed  = 1 // a goal missed, or nothing measured
	exitUsage   = 2
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case apiserver.Role:
			os.Exit(asProcess(apiserver.Main))
		case client.Role:
			os.Exit(asProcess(client.Main))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// asProcess is one of the other roles.
func asProcess(role func(arguments []string, stdin io.Reader, stdout io.Writer) error) int {
	if err := role(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return exitReached
}

// settings are the flags.
type settings struct {
	short    bool
	only     *regexp.Regexp
	passes   int
	profiles string
	gzip     bool
}

func parseSettings(arguments []string, stderr io.Writer) (settings, error) {
	s := settings{only: regexp.MustCompile("")}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&s.short, "short", false, "a part of the workloads, and less of each: for CI")
	flags.Func("only", "measure the workloads whose `name` matches a regular expression", func(text string) (err error) {
		s.only, err = regexp.Compile(text)
		return err
	})
	flags.IntVar(&s.passes, "passes", 0, "`number` of passes of each side, if not the default")
	flags.StringVar(&s.profiles, "profiles", "", "write CPU and allocation profiles into a `directory`; figures get some percents worse")
	flags.BoolVar(&s.gzip, "gzip", false, "compress lists, as API servers do; both sides ask for it")
	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if flags.NArg() > 0 || s.passes < 0 {
		flags.Usage()
		return s, errors.New("unknown arguments")
	}
	return s, nil
}

// chosen are the lines to measure.
func (s settings) chosen() []line {
	scale := fullScale
	if s.short {
		scale = shortScale
	}
	var some []line
	for _, line := range lines(scale) {
		if line.long && s.short || !s.only.MatchString(line.name) {
			continue
		}
		if s.passes > 0 {
			line.passes = s.passes
		}
		line.task.Gzip = s.gzip
		some = append(some, line)
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
	lines := settings.chosen()
	if len(lines) == 0 {
		return fmt.Errorf("no workload matches %q", settings.only)
	}
	fmt.Fprintln(stdout, machine())
	var report report
	for _, line := range lines {
		measured, err := line.measure(ctx, stderr, settings.profiles)
		if err != nil {
			return errors.Join(err, report.print(stdout)) // what there is may have taken long
		}
		report.add(measured)
	}
	if err := report.print(stdout); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "measured in %s\n", time.Since(began).Round(time.Second))
	if report.failed {
		return errMissed
	}
	return nil
}
