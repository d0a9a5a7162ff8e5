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

	"github.com/watchmirror/cache/internal/simulation/script"
)

// grace is the time until a worker is killed after a request for its stacks or the end of its input.
const grace = 10 * time.Second

// process is a worker process. It belongs to one goroutine at a time.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    *workerOutput
}

func start(makeCommand func() (*exec.Cmd, error)) (*process, error) {
	command, err := makeCommand()
	if err != nil {
		return nil, err
	}
	p := &process{command: command, said: &workerOutput{}}
	command.Stderr = p.said
	command.WaitDelay = grace
	if command.Env == nil {
		command.Env = os.Environ()
	}
	// A data race ends the worker at once, so that its script is known. The default wait of a second at
	// exit is not needed.
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

// runScript makes the worker run a script. If the worker died, it has been waited for, and the result is the
// cause of its death, unless ctx ended it.
func (p *process) runScript(ctx context.Context, input script.Script, limit time.Duration) (result script.Result, alive bool) {
	var failure error
	exchanged := make(chan struct{})
	go func() { // ends at the latest with the process
		defer close(exchanged)
		failure = p.exchange(input, &result)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-exchanged:
		if failure == nil {
			return result, true
		}
		p.end()
		return p.deathResult(input, fmt.Sprintf("%v (%v)", p.command.ProcessState, failure)), false
	case <-ctx.Done():
		_ = p.command.Process.Kill()
		<-exchanged
		p.end()
		return script.Result{}, false
	case <-timer.C:
		p.dumpStacks(exchanged)
		p.end()
		result := p.deathResult(input, "")
		result.Failures = []string{fmt.Sprintf("%s: the script took longer than %v of real time", script.DeathHang, limit)}
		return result, false
	}
}

// exchange sends a script and waits for its result.
func (p *process) exchange(input script.Script, result *script.Result) error {
	if _, err := p.in.Write(append(input.Encode(), '\n')); err != nil {
		return err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, result)
}

// dumpStacks ends the worker by a signal that makes it print its stacks, and waits for the end of the
// exchange.
func (p *process) dumpStacks(exchanged <-chan struct{}) {
	timer := time.AfterFunc(grace, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	if err := p.command.Process.Signal(syscall.SIGQUIT); err != nil {
		_ = p.command.Process.Kill() // some systems do not have that signal
	}
	<-exchanged
}

// end closes the input of the worker and waits for its end and its last output. No exchange may be in
// progress.
func (p *process) end() {
	timer := time.AfterFunc(grace, func() { _ = p.command.Process.Kill() })
	defer timer.Stop()
	_ = p.in.Close()
	_ = p.command.Wait() // how it ended is in its ProcessState
}

// deathResult returns the result of a script whose worker has died. otherwise is its failure if the worker
// printed nothing.
func (p *process) deathResult(input script.Script, otherwise string) script.Result {
	text := p.said.String()
	return script.Result{
		Seed: input.Seed, Failures: []string{deathOf(text, otherwise)}, Trace: strings.Split(relevantStacks(text), "\n"),
	}
}

// relevantStacks omits goroutines without functions of this module, such as the many of the runtime, which
// come first.
func relevantStacks(said string) string {
	paragraphs := strings.Split(strings.TrimSpace(said), "\n\n")
	return strings.Join(slices.DeleteFunc(paragraphs, func(text string) bool {
		return strings.HasPrefix(text, "goroutine ") && !strings.Contains(text, module)
	}), "\n\n")
}

// deathOf finds the cause of a process's death in its output: the kind, and a line.
func deathOf(said, otherwise string) string {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		switch {
		case strings.Contains(line, "WARNING: DATA RACE"):
			return script.DeathRace + ": " + firstOwnFunction(said)
		case strings.HasPrefix(line, "panic: deadlock:"), strings.HasPrefix(line, "fatal error: all goroutines"):
			return script.DeathDeadlock + ": " + line
		case strings.HasPrefix(line, "panic: "):
			return script.DeathPanic + ": " + strings.TrimPrefix(line, "panic: ")
		case strings.HasPrefix(line, "fatal error: "):
			return script.DeathOther + ": " + line
		}
	}
	return script.DeathOther + ": " + otherwise
}

// module is the prefix of this module's functions in stacks.
const module = "github.com/watchmirror/cache"

// firstOwnFunction returns the first function of this module in an output.
func firstOwnFunction(said string) string {
	for line := range strings.Lines(said) {
		if name, ours := strings.CutPrefix(strings.TrimSpace(line), module); ours {
			return strings.TrimLeft(name, "./")
		}
	}
	return "see the stacks"
}
