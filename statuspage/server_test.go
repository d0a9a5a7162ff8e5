package statuspage

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipeListener accepts connections in memory, so that the server's timeouts pass in virtual time.
type pipeListener struct{ connections chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	connection, open := <-l.connections
	if !open {
		return nil, errors.New("closed")
	}
	return connection, nil
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestAConnectionEndsOnWhichARequestNeverArrivesAsAWhole(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"a part of a header": "GET / HTTP/1.1\r\nHost: local",
		"no body":            "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		"a part of a body":   "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc",
		"no chunk":           "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := pipeListener{make(chan net.Conn)}
				server := newServer(Handler(&Registry{}))
				served := make(chan error, 1)
				go func() { served <- server.Serve(listener) }()
				client, accepted := net.Pipe()
				listener.connections <- accepted
				began := time.Now()
				_, err := io.WriteString(client, text)
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, bufio.NewReader(client))
				assert.LessOrEqual(t, time.Since(began), 10*time.Second)
				require.NoError(t, client.Close())
				close(listener.connections)
				require.NotErrorIs(t, <-served, http.ErrServerClosed)
				require.NoError(t, server.Close())
			})
		})
	}
}

// A program mounts the handler in a server without timeouts. Fails if a response waits for a body that never arrives.
func TestARequestWhoseBodyNeverArrivesEndsOnAnyServer(t *testing.T) {
	for name, text := range map[string]string{
		"no body":          "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
		"a part of a body": "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc",
		"no chunk":         "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"another method":   "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := pipeListener{make(chan net.Conn)}
				server := &http.Server{Handler: Handler(&Registry{})}
				served := make(chan error, 1)
				go func() { served <- server.Serve(listener) }()
				client, accepted := net.Pipe()
				listener.connections <- accepted
				_, err := io.WriteString(client, text)
				require.NoError(t, err)
				require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Minute)))
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, response.Body)
				require.NoError(t, err)
				_, err = client.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.EOF, "the server has closed the connection")
				require.NoError(t, client.Close())
				close(listener.connections)
				require.NotErrorIs(t, <-served, http.ErrServerClosed)
				require.NoError(t, server.Close())
			})
		})
	}
}
