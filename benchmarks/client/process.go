package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/watchmirror/cache/benchmarks/apiserver"
)

// Role is the first argument of a program that is to do a task. Run runs the program itself again
// with it.
const Role = "measure"

// PlayRole does what Run started the program for, and ends the program. It returns if the program
// was started for something else.
func PlayRole() {
	if len(os.Args) < 2 {
		return
	}
	roles := map[string]func([]string, io.Reader, io.Writer) error{
		apiserver.Role: apiserver.Main,
		Role:           perform,
	}
	role := roles[os.Args[1]]
	if role == nil {
		return
	}
	if err := role(os.Args[2:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run starts a process that does the task, and a server if it needs one, and returns its
// result. Both have ended when it returns, and when this process ends before: they end with their
// standard input.
func Run(ctx context.Context, task Task) (result Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, task.Timeout)
	defer cancel()
	url := ""
	if task.Work.NeedsServer() {
		server, err := apiserver.Start(task.Server())
		if err != nil {
			return Result{}, err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		url = server.URL
	}
	program, err := os.Executable()
	if err != nil {
		return Result{}, fmt.Errorf("no process for the task: %w", err)
	}
	argument, err := json.Marshal(task)
	if err != nil {
		return Result{}, fmt.Errorf("no process for the task: %w", err)
	}
	command := exec.CommandContext(ctx, program, Role, string(argument), url)
	command.Env = append(os.Environ(), task.environment()...)
	stdin, err := command.StdinPipe()
	if err != nil {
		return Result{}, fmt.Errorf("no process for the task: %w", err)
	}
	defer stdin.Close()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return Result{}, fmt.Errorf("%s, %s: %w\n%s", task.Side, task.Work, err, stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		return Result{}, fmt.Errorf("%s, %s: its result: %w", task.Side, task.Work, err)
	}
	return result, nil
}

// environment sets the collector up, for the process's whole life.
func (t Task) environment() []string {
	settings := []string{fmt.Sprintf("GOGC=%d", t.GCPercent)}
	if t.StopTheWorld {
		settings = append(settings, "GODEBUG=gcstoptheworld=1")
	}
	return settings
}

// perform is the task's process: it does the task and prints the result. arguments are
// those behind Role.
func perform(arguments []string, stdin io.Reader, stdout io.Writer) error {
	if len(arguments) != 2 {
		return fmt.Errorf("%s wants a task in JSON and the address of a server, and has %d arguments", Role, len(arguments))
	}
	var task Task
	if err := json.Unmarshal([]byte(arguments[0]), &task); err != nil {
		return fmt.Errorf("%s: its task: %w", Role, err)
	}
	// As every real program, it has a socket: the runtime's poller is in use.
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("%s: %w", Role, err)
	}
	defer socket.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
		// The parent process has ended. What ignores its context ends too.
		time.Sleep(5 * time.Second)
		os.Exit(1)
	}()
	result, err := task.run(ctx, arguments[1])
	if err != nil {
		return fmt.Errorf("%s: %w", Role, err)
	}
	return json.NewEncoder(stdout).Encode(result)
}
