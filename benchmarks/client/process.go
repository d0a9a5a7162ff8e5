package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	"github.com/watchmirror/cache/benchmarks/apiserver"
)

// role is the first argument of a program that is to do a task, which is the second one.
const role = "measure"

// Run starts this program again, in a process that does the task, and serves what the task needs of
// a server. It returns the result. The process has ended when Run returns, and ends with its
// standard input when this process ends before.
func Run(ctx context.Context, task Task) (Result, error) {
	if config := task.server(); config != nil {
		server := httptest.NewServer(apiserver.NewHandler(*config))
		defer server.Close()
		task.Target.URL = server.URL
	}
	command, err := task.command(ctx)
	if err != nil {
		return nil, fmt.Errorf("no process for the task: %w", err)
	}
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("no process for the task: %w", err)
	}
	defer stdin.Close()
	var stdout, stderr bytes.Buffer
	command.Stdout = &stdout
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		err = cmp.Or(ctx.Err(), err)
		return nil, fmt.Errorf("%s, %s: %w\n%s", task.Side, task.Work, err, stderr.Bytes())
	}
	var result Result
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		return nil, fmt.Errorf("%s, %s: its result: %w", task.Side, task.Work, err)
	}
	return result, nil
}

// command is this program in the role of doing the task. The collector is set up for the process's
// whole life.
func (t Task) command(ctx context.Context) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argument, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, role, string(argument))
	command.Env = append(os.Environ(), fmt.Sprintf("GOGC=%d", cmp.Or(t.GCPercent, 100)))
	if t.StopTheWorld {
		command.Env = append(command.Env, "GODEBUG=gcstoptheworld=1")
	}
	return command, nil
}

// PlayRole does what Run started the program for, and ends the program. It returns if the program
// was started for something else.
func PlayRole() {
	if len(os.Args) != 3 || os.Args[1] != role {
		return
	}
	if err := perform(os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// perform does a task and prints its result.
func perform(argument string) error {
	stdout := os.Stdout
	var task Task
	if err := json.Unmarshal([]byte(argument), &task); err != nil {
		return err
	}
	// As every real program, it has a socket: the runtime's poller is in use.
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		// The parent process has ended. What ignores its context ends too.
		time.Sleep(5 * time.Second)
		os.Exit(1)
	}()
	result, err := task.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(result)
}

func (t Task) run(ctx context.Context) (Result, error) {
	work := works[t.Work]
	if work == nil {
		return nil, fmt.Errorf("%q is no work", t.Work)
	}
	return work(t, ctx)
}
