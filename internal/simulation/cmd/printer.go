package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// command is the command line of this program.
const command = "go run ./internal/simulation/cmd"

// printer prints results. It may be used concurrently.
type printer struct {
	opts options

	mu       sync.Mutex
	out      io.Writer
	progress io.Writer // of interest only during the run
}

func (p *printer) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format, args...)
}

// result prints the failures of a seed.
func (p *printer) result(r script.Result) {
	switch {
	case len(r.Failures) > 0:
		p.printf("seed %d FAILS\n%s    again: %s -seeds 1 -from %d\n", r.Seed, indented(p.firstFailures(r.Failures)), command, r.Seed)
	case p.opts.verbose:
		p.printf("seed %d holds: %v of virtual time, %d checks, %d requests, %d calls of handlers\n",
			r.Seed, r.Virtual, r.Checks, r.Requests, r.Received)
	}
}

func (p *printer) failures(r script.Result) {
	p.printf("%s", indented(p.firstFailures(r.Failures)))
}

// firstFailures returns the first failures, from which the others mostly follow.
func (p *printer) firstFailures(failures []string) []string {
	const few = 5
	if p.opts.verbose || len(failures) <= few {
		return failures
	}
	return append(slices.Clone(failures[:few]), fmt.Sprintf("and %d more", len(failures)-few))
}

// trace prints the end of a trace. The output of a process that died is printed from its beginning, which
// has the cause.
func (p *printer) trace(r script.Result) {
	lines, skipped := r.Trace, max(0, len(r.Trace)-p.opts.lines)
	if skipped == len(lines) {
		return
	}
	if script.IsDeath(r.Kind()) {
		p.printf("  seed %d, the first lines of what its process said:\n%s", r.Seed, indented(lines[:len(lines)-skipped]))
		return
	}
	p.printf("  seed %d, the last lines of its trace:\n%s", r.Seed, indented(lines[skipped:]))
}

func (p *printer) examining(r script.Result) {
	p.printf("\nseed %d, %q: once more\n", r.Seed, r.Kind())
}

func (p *printer) replayed(r script.Replayed) {
	end := ""
	if r.Runs < max(1, p.opts.replay) {
		end = "; there was no time for more"
	}
	p.printf("  fails in %s runs%s\n", rate(r), end)
}

// rate formats the number of failed runs, by kind.
func rate(r script.Replayed) string {
	text := fmt.Sprintf("%d of %d", r.Failed(), r.Runs)
	if len(r.Kinds) < 2 {
		return text
	}
	var ways []string
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		ways = append(ways, fmt.Sprintf("%s: %d", kind, r.Kinds[kind]))
	}
	return text + " (" + strings.Join(ways, ", ") + ")"
}

// shrinking is the result of shrinking a script.
type shrinking struct {
	from, to     script.Script
	tried, trust int
	complete     bool
	again        script.Replayed
	example      script.Result
}

func (p *printer) shrunk(s shrinking) {
	end := "nothing in it can go"
	if !s.complete {
		end = "there was no time for more"
	}
	p.printf("  smaller: %d steps of %d, %d mirrors of %d, after %d scripts with up to %d runs each; %s\n  fails in %s runs\n",
		len(s.to.Steps), len(s.from.Steps), len(s.to.Setup.Mirrors), len(s.from.Setup.Mirrors), s.tried, s.trust, end, rate(s.again))
	p.failures(s.example)
	p.trace(s.example)
	p.printf("  the script, with the jitter of seed %d:\n%s", s.to.Seed, indented(describeScript(s.to)))
	text := s.to.Encode()
	p.printf("    %s\n", text)
	path, err := writeScript(s.to.Seed, text)
	if err != nil {
		p.printf("  it is kept in no file: %v\n", err)
		return
	}
	p.printf("  again: %s -script %s\n", command, path)
}

// writeScript writes a script to a new file and returns the path.
func writeScript(seed uint64, text []byte) (path string, err error) {
	file, err := os.CreateTemp("", fmt.Sprintf("simulation-%d-*.json", seed))
	if err != nil {
		return "", err
	}
	_, err = file.Write(append(text, '\n'))
	if closing := file.Close(); err == nil {
		err = closing
	}
	return filepath.ToSlash(file.Name()), err
}

// describeScript returns a readable form of a script.
func describeScript(s script.Script) []string {
	setup := s.Setup
	setup.Mirrors = nil
	lines := []string{fmt.Sprintf("source: %+v", setup)}
	for i, m := range s.Setup.Mirrors {
		handlers := m.Handlers
		m.Handlers = nil
		lines = append(lines, fmt.Sprintf("mirror %d: %+v", i, m))
		for j, h := range handlers {
			lines = append(lines, fmt.Sprintf("  handler %d: %+v", j, h))
		}
	}
	at := time.Duration(0)
	for _, step := range s.Steps {
		at += step.After
		lines = append(lines, fmt.Sprintf("%12v  %v", at, step))
	}
	return lines
}

func indented(lines []string) string {
	var text strings.Builder
	for _, line := range lines {
		text.WriteString("    " + line + "\n")
	}
	return text.String()
}

// progressOf prints the number of completed seeds.
func (p *printer) progressOf(t *seedResults) {
	t.mu.Lock()
	runs, failed := t.runs, t.failed
	t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.progress, "simulation: %d of %d seeds, %d failures, %s seeds/s\n", runs, p.opts.seeds, failed, perSecond(runs, time.Since(t.begun)))
}

// summary prints the last line. No script may be running.
func (p *printer) summary(t *seedResults, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.printf("simulation: %d seeds from %d, %d failures, %dh%02dm of virtual time, %s seeds/s, %s checks, %s calls of handlers, %v\n",
		t.runs, t.from, t.failed, int(t.virtual.Hours()), int(t.virtual.Minutes())%60, perSecond(t.runs, took),
		count(t.checks), count(t.received), took.Round(time.Second))
}

func perSecond(n int, took time.Duration) string {
	rate := float64(n) / max(took.Seconds(), 0.001)
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

func count(n int) string {
	if n < 1_000_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f million", float64(n)/1e6)
}
