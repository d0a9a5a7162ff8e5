// Command run prints the lines of package simple.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"

	"github.com/watchmirror/cache/benchmarks/simple"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "measure only lines whose name contains one of these texts, separated by commas")
	objects := flag.Int("objects", simple.Full.Objects, "number of objects of a store")
	rounds := flag.Int("rounds", simple.Full.Rounds, "number of rounds of each side")
	profile := flag.String("profile", "", "file for a CPU profile")
	flag.Parse()

	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}

	scale := simple.Scale{Objects: *objects, Rounds: *rounds}
	for _, line := range simple.Lines() {
		if !selected(line.Name, *only) {
			continue
		}
		result, err := line.Measure(scale)
		if err != nil {
			return fmt.Errorf("%s: %w", line.Name, err)
		}
		fmt.Println(result)
	}
	return nil
}

func selected(name, only string) bool {
	for text := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, text) {
			return true
		}
	}
	return false
}
