package apiserver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Role is the first argument of a program that is to be a server: it then calls Main and
// nothing else. Start runs the program itself again with it.
const Role = "serve"

// Process is a server in a process of its own.
type Process struct {
	// URL is where the API begins.
	URL string

	command *exec.Cmd
	stdin   io.Closer
}

// startTimeout is how long a server may take until it listens; it makes its templates
// in some tenths of a second.
const startTimeout = 5 * time.Minute

// Start starts a server and returns when it listens. The program must call Main when it
// finds Role among its arguments.
//
// The server ends when its standard input does: by Stop, and also when this process
// ends in whatever way, because then the operating system closes the pipe.
func Start(config Config) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("no server: %w", err)
	}
	settings, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("no server: %w", err)
	}
	command := exec.Command(program, Role, string(settings))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("no server: %w", err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("no server: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("no server: %w", err)
	}
	tooLong := time.AfterFunc(startTimeout, func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	tooLong.Stop()
	p := &Process{URL: strings.TrimSpace(line), command: command, stdin: stdin}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not say where it listens: %w", err), p.Stop())
	}
	return p, nil
}

// Stop ends the server and waits for it.
func (p *Process) Stop() error {
	_ = p.stdin.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("the server: %w", err)
	}
	return nil
}

// Main is the server's process: it serves on loopback, says where on standard output,
// and returns when standard input ends. arguments are those behind Role.
func Main(arguments []string, stdin io.Reader, stdout io.Writer) error {
	if len(arguments) != 1 {
		return fmt.Errorf("%s wants one argument, its configuration in JSON, and has %d", Role, len(arguments))
	}
	var config Config
	if err := json.Unmarshal([]byte(arguments[0]), &config); err != nil {
		return fmt.Errorf("%s: its configuration: %w", Role, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("%s: %w", Role, err)
	}
	server := &http.Server{Handler: NewHandler(config)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if _, err := fmt.Fprintf(stdout, "http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, server.Close(), <-served)
	}
	_, _ = io.Copy(io.Discard, stdin)
	err = server.Close()
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
