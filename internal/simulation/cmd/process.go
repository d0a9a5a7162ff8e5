package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/watchmirror/cache/internal/simulation"
)

// grace is how long a worker that was asked for its stacks, or whose input has ended,
// may take before it is killed.
const grace = 10 * time.Second

// process is a worker as its parent sees it. It belongs to one goroutine at a time.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    *remarks
}

func start(makeCommand func() (*exec.Cmd, error)) (*process, error) {
	command, err := makeCommand()
	if err != nil {
		return nil, err
	}
	p := &process{command: command, said: &remarks{}}
	command.Stderr = p.said
	command.WaitDelay = grace
	if command.Env == nil {
		command.Env = os.Environ()
	}
	// A data race ends the worker at once, so that it is known whose it is. Without one
	// there is nothing to wait for at its end; by default that would take a second.
	command.Env = append(command.Env, "GORACE=halt_on_error=1 atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	if p.in, err = command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	p.out = bufio.NewReader(out)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	return p, nil
}

// ask has the worker run a script. A worker that is not alive any more after that has
// been waited for already; its result is what it died of, unless ctx ended it.
func (p *process) ask(ctx context.Context, script simulation.Script, limit time.Duration) (result simulation.Result, alive bool) {
	answers := make(chan error, 1)
	go func() { answers <- p.exchange(script, &result) }() // ends at the latest with the process
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-answers:
		if err == nil {
			return result, true
		}
		p.end()
		return p.death(script, fmt.Sprintf("%v (%v)", p.command.ProcessState, err)), false
	case <-ctx.Done():
		_ = p.command.Process.Kill()
		<-answers
		p.end()
		return simulation.Result{}, false
	case <-timer.C:
		p.tellStacks(answers)
		p.end()
		result := p.death(script, "")
		result.Failures = []string{fmt.Sprintf("%s: the script took longer than %v of real time", simulation.DeathHang, limit)}
		return result, false
	}
}

// exchange sends a script and waits for its result.
func (p *process) exchange(script simulation.Script, result *simulation.Result) error {
	if _, err := p.in.Write(append(script.Encode(), '\n')); err != nil {
		return err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, result)
}

// tellStacks ends the worker in such a way that it says where its goroutines are, and
// waits for the end of the exchange.
func (p *process) tellStacks(answers <-chan error) {
	timer := time.AfterFunc(grace, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	if err := p.command.Process.Signal(syscall.SIGQUIT); err != nil {
		_ = p.command.Process.Kill() // there are systems without that signal
	}
	<-answers
}

// end closes the input of the worker and waits for its end, and for the last that it
// says. No exchange may be under way.
func (p *process) end() {
	timer := time.AfterFunc(grace, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	_ = p.in.Close()
	_ = p.command.Wait() // how it ended is in its ProcessState
}

// death is the result of a script whose worker is no more. otherwise is what to say of
// it if the worker has said nothing.
func (p *process) death(script simulation.Script, otherwise string) simulation.Result {
	text := p.said.String()
	return simulation.Result{
		Seed: script.Seed, Failures: []string{deathOf(text, otherwise)}, Trace: strings.Split(withoutOthers(text), "\n"),
	}
}

// withoutOthers leaves out the goroutines that have nothing to do with us: those of the
// runtime come first, and there are many of them.
func withoutOthers(said string) string {
	paragraphs := strings.Split(strings.TrimSpace(said), "\n\n")
	return strings.Join(slices.DeleteFunc(paragraphs, func(text string) bool {
		return strings.HasPrefix(text, "goroutine ") && !strings.Contains(text, module)
	}), "\n\n")
}

// deathOf finds in what a process has said what it died of: its kind, and a line.
func deathOf(said, otherwise string) string {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		switch {
		case strings.Contains(line, "WARNING: DATA RACE"):
			return simulation.DeathRace + ": " + firstOfOurs(said)
		case strings.HasPrefix(line, "panic: deadlock:"), strings.HasPrefix(line, "fatal error: all goroutines"):
			return simulation.DeathDeadlock + ": " + line
		case strings.HasPrefix(line, "panic: "):
			return simulation.DeathPanic + ": " + strings.TrimPrefix(line, "panic: ")
		case strings.HasPrefix(line, "fatal error: "):
			return simulation.DeathOther + ": " + line
		}
	}
	return simulation.DeathOther + ": " + otherwise
}

// module is what the names of our functions begin with, in stacks.
const module = "github.com/watchmirror/cache"

// firstOfOurs is the first of our functions in what was said.
func firstOfOurs(said string) string {
	for line := range strings.Lines(said) {
		if name, ours := strings.CutPrefix(strings.TrimSpace(line), module); ours {
			return strings.TrimLeft(name, "./")
		}
	}
	return "see the stacks"
}
