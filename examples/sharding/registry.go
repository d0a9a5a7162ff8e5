package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/watchmirror/cache/cachetest"
)

// registry records which process works on which objects.
type registry struct {
	source *cachetest.Source

	mu sync.Mutex
	// owners has the ordinal that was the first to work on an object, also of a deleted one.
	owners map[string]int
	// current has the names of the objects at each ordinal.
	current [replicas]map[string]bool
	failure error
}

func newRegistry(source *cachetest.Source) *registry {
	r := &registry{source: source, owners: map[string]int{}}
	for ordinal := range replicas {
		r.forget(ordinal)
	}
	return r
}

// forget records that a process has ended.
func (r *registry) forget(ordinal int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current[ordinal] = map[string]bool{}
}

func (r *registry) record(ordinal int, e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Stopped {
		delete(r.current[ordinal], e.Name)
		return
	}
	owner, known := r.owners[e.Name]
	if known && owner != ordinal {
		r.failure = fmt.Errorf("%s is at process %d, and was at %d", e.Name, ordinal, owner)
	}
	r.owners[e.Name] = ordinal
	r.current[ordinal][e.Name] = true
}

// await waits until each object of the source is at one process.
func (r *registry) await(what string) error {
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(50 * time.Millisecond) {
		counts, complete, err := r.compare()
		if err != nil {
			return err
		}
		if complete {
			fmt.Printf("%s: %v objects\n", what, counts)
			return nil
		}
	}
	counts, _, _ := r.compare()
	return fmt.Errorf("%s: the processes have %v objects after %v", what, counts, patience)
}

// compare counts the objects of each process. complete is true if they are those of the source.
func (r *registry) compare() (counts [replicas]int, complete bool, err error) {
	all := r.source.Objects()
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0
	for ordinal, names := range r.current {
		counts[ordinal] = len(names)
		total += len(names)
	}
	missing := 0
	for _, obj := range all {
		name := obj.(Order).Name
		if !r.current[r.owners[name]][name] {
			missing++
		}
	}
	return counts, total == len(all) && missing == 0, r.failure
}

// process is a running replica.
type process struct {
	command *exec.Cmd
	output  io.Closer
	read    chan struct{} // closed when its last event is recorded
}

// start starts a replica, and records its events.
func start(ordinal int, server string, registry *registry) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, "-ordinal", strconv.Itoa(ordinal), "-server", server)
	events, output := io.Pipe()
	command.Stdout = output
	command.Stderr = os.Stderr
	if _, err := command.StdinPipe(); err != nil { // it ends with this process
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command: command, output: output, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		decoder := json.NewDecoder(events)
		for {
			var e event
			if decoder.Decode(&e) != nil {
				return
			}
			registry.record(ordinal, e)
		}
	}()
	return p, nil
}

// kill kills the process, and waits until its events are recorded.
func (p *process) kill() error {
	if err := p.command.Process.Kill(); err != nil {
		return fmt.Errorf("kill a process: %w", err)
	}
	err := p.command.Wait()
	_ = p.output.Close()
	<-p.read
	var killed *exec.ExitError
	if !errors.As(err, &killed) {
		return fmt.Errorf("the killed process ended by itself: %w", err)
	}
	return nil
}
