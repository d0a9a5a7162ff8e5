// Package ownertest runs replicas of a program as processes, and checks which of them works on
// what. Each replica prints an Event as JSON when it begins and when it stops to work on something.
package ownertest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Event is a line that a replica prints.
type Event struct {
	Name    string
	Stopped bool
	At      time.Time
}

// interval is the time in which a replica works on something. to is zero while it does.
type interval struct {
	replica  string
	from, to time.Time
}

func (i interval) String() string {
	const layout = "15:04:05.000"
	to := "now"
	if !i.to.IsZero() {
		to = i.to.Format(layout)
	}
	return fmt.Sprintf("%s from %s to %s", i.replica, i.from.Format(layout), to)
}

// Registry has the history of all names. Its methods may be called concurrently.
type Registry struct {
	mu        sync.Mutex
	intervals map[string][]interval
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{intervals: map[string][]interval{}} }

func (r *Registry) record(replica string, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.Stopped {
		r.intervals[e.Name] = append(r.intervals[e.Name], interval{replica: replica, from: e.At})
		return
	}
	r.closeLocked(replica, e.Name, e.At)
}

func (r *Registry) closeLocked(replica, name string, at time.Time) {
	for i, work := range r.intervals[name] {
		if work.replica == replica && work.to.IsZero() {
			r.intervals[name][i].to = at
		}
	}
}

// end records that a process does not work on anything any more.
func (r *Registry) end(replica string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.intervals {
		r.closeLocked(replica, name, at)
	}
}

// Current returns the names that each replica works on.
func (r *Registry) Current() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := map[string][]string{}
	for name, history := range r.intervals {
		for _, work := range history {
			if work.to.IsZero() {
				current[work.replica] = append(current[work.replica], name)
			}
		}
	}
	return current
}

// BegunAfter returns when the first replica began to work on a name after a time, if one did.
func (r *Registry) BegunAfter(name string, after time.Time) (first time.Time, exists bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, work := range r.intervals[name] {
		if !work.from.After(after) {
			continue
		}
		if !exists || work.from.Before(first) {
			first = work.from
			exists = true
		}
	}
	return first, exists
}

// Check returns the longest time between two replicas of one name, and an error if two replicas
// have worked on one name at the same time. It checks names for which check returns true. Call it
// while no replica begins or stops to work on them.
func (r *Registry) Check(check func(name string) bool) (longest time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, history := range r.intervals {
		if !check(name) {
			continue
		}
		slices.SortFunc(history, func(a, b interval) int { return a.from.Compare(b.from) })
		for i := range len(history) - 1 {
			before, after := history[i], history[i+1]
			if before.to.IsZero() || after.from.Before(before.to) {
				return longest, fmt.Errorf("two replicas work on %q: %v and %v", name, before, after)
			}
			longest = max(longest, after.from.Sub(before.to))
		}
	}
	return longest, nil
}

// Process is a running replica.
type Process struct {
	id       string
	command  *exec.Cmd
	registry *Registry
	output   io.Closer
	read     chan struct{} // closed when its last event is recorded
}

// Start starts a replica and records its events. An id is for one process.
func (r *Registry) Start(id string, command *exec.Cmd) (*Process, error) {
	events, output := io.Pipe()
	command.Stdout = output
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start replica %s: %w", id, err)
	}
	p := &Process{id: id, command: command, registry: r, output: output, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		decoder := json.NewDecoder(events)
		for {
			var e Event
			if decoder.Decode(&e) != nil {
				return
			}
			r.record(id, e)
		}
	}()
	return p, nil
}

// Kill ends the process without notice, and waits until it has ended. Its work ends then.
func (p *Process) Kill() error {
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill replica %s: %w", p.id, err)
	}
	_ = p.wait() // "signal: killed"
	p.registry.end(p.id, time.Now())
	return nil
}

// Terminate asks the process to end, and waits until it has. It must have stopped all work before.
func (p *Process) Terminate() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("terminate replica %s: %w", p.id, err)
	}
	if err := p.wait(); err != nil {
		return fmt.Errorf("terminate replica %s: %w", p.id, err)
	}
	if left := p.registry.Current()[p.id]; len(left) > 0 {
		return fmt.Errorf("replica %s has ended but works on %d names", p.id, len(left))
	}
	return nil
}

func (p *Process) wait() error {
	err := p.command.Wait()
	_ = p.output.Close()
	<-p.read
	return err
}
