package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"time"
)

// workerFlag is the only argument of a worker, for internal use.
const workerFlag = "-worker"

// options are the arguments of the command.
type options struct {
	seeds   int
	from    uint64
	workers int
	script  string
	verbose bool

	// limit is the real time that one script may take.
	limit time.Duration
	// most is the number of failures after which no seed is begun; 0 is unlimited.
	most int
	// replay is the maximum number of replays of a failed script, examine the number of analyzed
	// kinds of failure, and shrinkFor the time for replaying and then for shrinking each.
	replay    int
	examine   int
	shrink    bool
	shrinkFor time.Duration
	// lines is the number of printed lines of a trace.
	lines int
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("simulation", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.seeds, "seeds", 200, "how `many` seeds to run; a single one is run as often as -replay says")
	flags.Uint64Var(&o.from, "from", 0, "the first `seed`")
	flags.IntVar(&o.workers, "j", runtime.GOMAXPROCS(0), "how many `workers` run scripts at once")
	flags.StringVar(&o.script, "script", "", "run the script of this `file` instead of seeds, as often as -replay says")
	flags.BoolVar(&o.verbose, "v", false, "print a line for each seed")
	flags.DurationVar(&o.limit, "limit", 5*time.Minute, "the longest that one script may take, in real `time`; one that takes longer failed")
	flags.IntVar(&o.most, "most", 20, "begin no further seed after so `many` failures; 0 is never")
	flags.IntVar(&o.replay, "replay", 200, "how `many` times to run again what failed; 0 is not at all")
	flags.IntVar(&o.examine, "kinds", 3, "of how `many` kinds of failure the first is replayed and shrunk")
	flags.BoolVar(&o.shrink, "shrink", true, "make the script that failed smaller")
	flags.DurationVar(&o.shrinkFor, "shrink-for", 2*time.Minute, "the longest that replaying one script may take, and then making it smaller, in real `time`")
	flags.IntVar(&o.lines, "lines", 60, "how `many` of the last lines of a trace to print")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.validate()
}

func (o options) validate() error {
	var problems []error
	for _, number := range []struct {
		name         string
		value, least int64
	}{
		{"-seeds", int64(o.seeds), 1}, {"-j", int64(o.workers), 1}, {"-limit", int64(o.limit), 1},
		{"-most", int64(o.most), 0}, {"-replay", int64(o.replay), 0}, {"-kinds", int64(o.examine), 0},
		{"-shrink-for", int64(o.shrinkFor), 1}, {"-lines", int64(o.lines), 0},
	} {
		if number.value < number.least {
			problems = append(problems, fmt.Errorf("%s: %d is less than %d", number.name, number.value, number.least))
		}
	}
	return errors.Join(problems...)
}
