package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parentRole is a process that starts a server, says where it is, and waits to be
// killed.
const parentRole = "parent"

// TestMain lets the test's program be a server, and the parent of one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Role:
			exit(Main(os.Args[2:], os.Stdin, os.Stdout))
		case parentRole:
			server, err := Start(Config{Pods: 1})
			if err != nil {
				exit(err)
			}
			fmt.Println(server.URL)
			select {}
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func answers(url string) bool {
	response, err := http.Get(url + Path)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

func TestAServerServesUntilItIsStopped(t *testing.T) {
	server, err := Start(Config{Pods: 3})
	require.NoError(t, err)
	require.True(t, answers(server.URL))
	require.NoError(t, server.Stop())
	require.False(t, answers(server.URL))
}

func TestAServerEndsWhenItsParentIsKilled(t *testing.T) {
	parent := exec.Command(os.Args[0], parentRole)
	stdout, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	var url string
	_, err = fmt.Fscanln(stdout, &url)
	require.NoError(t, err)
	require.True(t, answers(url))
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return !answers(url) }, time.Minute, 20*time.Millisecond)
}
