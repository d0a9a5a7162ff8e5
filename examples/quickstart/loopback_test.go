package main

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

type runtimeObject = runtime.Object

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func TestLoopbackRefusesOnRequestAndListensOnTheSamePortAgain(t *testing.T) {
	t.Parallel()
	network, err := listenOnLoopback()
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(network) }()
	client := network.Client()
	defer client.CloseIdleConnections()

	get := func() error {
		response, err := client.Get(network.URL())
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	require.NoError(t, get())
	for range 3 {
		network.RefuseConnections(true)
		network.CutConnections()
		// The transport may learn of the cut only when it uses the connection: the
		// idle one goes first, so that the refusal is of a new one.
		client.CloseIdleConnections()
		require.True(t, utilnet.IsConnectionRefused(get()))
		network.RefuseConnections(false)
		require.Eventually(t, func() bool { return get() == nil }, 5*time.Second, 10*time.Millisecond)
	}
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

func TestCuttingResetsOpenConnections(t *testing.T) {
	t.Parallel()
	network, err := listenOnLoopback()
	require.NoError(t, err)
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := network.Accept()
		accepted <- conn
	}()
	client, err := net.Dial("tcp", network.Addr().String())
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	<-accepted
	network.CutConnections()
	require.NoError(t, client.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err = client.Read(make([]byte, 1))
	require.True(t, utilnet.IsConnectionReset(err), "%v", err)

	require.NoError(t, network.Close())
	_, err = network.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// Closing while connections are refused must not leave Accept waiting.
func TestClosingEndsAnAcceptThatWaitsForThePort(t *testing.T) {
	t.Parallel()
	network, err := listenOnLoopback()
	require.NoError(t, err)
	network.RefuseConnections(true)
	ended := make(chan error, 1)
	go func() {
		_, err := network.Accept()
		ended <- err
	}()
	require.NoError(t, network.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

// A port that another process has for good is an error, not a wait without end.
func TestAClosedPortIsAnErrorOfAccept(t *testing.T) {
	t.Parallel()
	network, err := listenOnLoopback()
	require.NoError(t, err)
	network.RefuseConnections(true)
	other, err := net.Listen("tcp", network.Addr().String())
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	network.RefuseConnections(false)
	_, err = network.Accept()
	require.ErrorContains(t, err, "opening port "+network.Addr().String()+" again")
}
