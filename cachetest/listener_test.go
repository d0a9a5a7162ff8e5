package cachetest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// pair returns both ends of a connection.
func pair(t testing.TB, l *cachetest.Listener) (client, server net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		if err == nil {
			accepted <- c
		}
	}()
	client, err := l.DialContext(context.Background(), "tcp", "anywhere:80")
	require.NoError(t, err)
	return client, <-accepted
}

func write(t testing.TB, c net.Conn, s string) {
	t.Helper()
	n, err := c.Write([]byte(s))
	require.NoError(t, err)
	require.Equal(t, len(s), n)
}

func read(c net.Conn) (string, error) {
	b := make([]byte, 1024)
	n, err := c.Read(b)
	return string(b[:n]), err
}

func TestBothEndsMayWriteFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, cachetest.NewListener())
		write(t, client, "to server")
		write(t, server, "to client")
		got, err := read(client)
		require.NoError(t, err)
		require.Equal(t, "to client", got)
		got, err = read(server)
		require.NoError(t, err)
		require.Equal(t, "to server", got)
		require.Equal(t, client.LocalAddr(), server.RemoteAddr())
		require.Equal(t, server.LocalAddr(), client.RemoteAddr())
		require.Equal(t, "memory", client.LocalAddr().Network())
		require.Equal(t, "client", client.LocalAddr().String())
	})
}

func TestAFullConnectionBlocksItsWriterUntilItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, cachetest.NewListener())
		text := strings.Repeat("0123456789", 50_000)
		done := make(chan error)
		go func() {
			_, err := server.Write([]byte(text))
			done <- err
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("half a megabyte fits into nothing")
		default:
		}
		got := make([]byte, len(text))
		_, err := io.ReadFull(client, got)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoError(t, <-done)
	})
}

func TestCloseDeliversWhatWasWrittenAndThenTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := cachetest.NewListener()
		client, server := pair(t, l)
		write(t, server, "bye")
		require.NoError(t, server.Close())
		require.Equal(t, 1, l.Connections())
		got, err := read(client)
		require.NoError(t, err)
		require.Equal(t, "bye", got)
		_, err = read(client)
		require.Equal(t, io.EOF, err)
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		_, err = server.Write([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = read(server)
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, client.Close())
		require.NoError(t, client.Close())
		require.Zero(t, l.Connections())
	})
}

func TestDeadlinesEndBlockedCallsAndCanBeMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, cachetest.NewListener())
		start := time.Now()
		require.NoError(t, client.SetDeadline(start.Add(time.Hour)))
		require.NoError(t, client.SetReadDeadline(start.Add(time.Second)))
		_, err := read(client)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		require.True(t, errors.As(err, &timeout) && timeout.Timeout())
		require.Equal(t, time.Second, time.Since(start))

		require.NoError(t, client.SetReadDeadline(time.Time{}))
		write(t, server, "x")
		_, err = read(client)
		require.NoError(t, err)

		// The deadline changes while a read waits for it.
		time.AfterFunc(time.Second, func() { _ = client.SetReadDeadline(time.Now().Add(-1)) })
		_, err = read(client)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(start))

		require.NoError(t, client.SetWriteDeadline(time.Now().Add(time.Second)))
		_, err = client.Write(make([]byte, 1<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestCutConnectionsResetsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := cachetest.NewListener()
		client, server := pair(t, l)
		write(t, server, "lost")
		l.CutConnections()
		for _, end := range []net.Conn{client, server} {
			_, err := read(end)
			require.ErrorIs(t, err, syscall.ECONNRESET)
			_, err = end.Write([]byte("x"))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		require.Zero(t, l.Connections())
		_, _ = pair(t, l)
		require.Equal(t, 1, l.Connections(), "new ones are not affected")
	})
}

func TestCutNextBreaksTheConnectionAfterSoManyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := cachetest.NewListener()
		l.CutNext(1, 7)
		client, server := pair(t, l)
		write(t, server, "hello")
		n, err := server.Write([]byte(" world"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, 2, n)
		got, err := read(client)
		require.NoError(t, err)
		require.Equal(t, "hello w", got)
		_, err = read(client)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, second := pair(t, l)
		write(t, second, "hello world")
	})
}

func TestFreezeKeepsBytesAndTheEndUntilThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := cachetest.NewListener()
		old, oldServer := pair(t, l)
		l.Freeze()
		fresh, freshServer := pair(t, l)
		write(t, oldServer, "old")
		write(t, freshServer, "fresh")
		require.NoError(t, oldServer.Close())
		for _, c := range []net.Conn{old, fresh} {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour)))
			_, err := read(c)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, c.SetReadDeadline(time.Time{}))
		}
		l.Thaw()
		got, err := read(old)
		require.NoError(t, err)
		require.Equal(t, "old", got)
		_, err = read(old)
		require.Equal(t, io.EOF, err)
		got, err = read(fresh)
		require.NoError(t, err)
		require.Equal(t, "fresh", got)
	})
}

func TestDialingFailsAsItDoesOnANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := cachetest.NewListener()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.DialContext(ctx, "tcp", "x:1")
		require.ErrorIs(t, err, context.DeadlineExceeded, "no Accept is called")
		l.RefuseConnections(true)
		_, err = l.DialContext(t.Context(), "tcp", "x:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		l.RefuseConnections(false)
		time.AfterFunc(time.Second, func() { _ = l.Close() })
		_, err = l.DialContext(t.Context(), "tcp", "x:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "closed while dialing")
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, l.Close())
		require.Zero(t, l.Connections())
	})
}

func TestAnHTTPConnectionCutInTheMiddleIsNoCleanEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, pods, _, _ := cluster(t)
		srv := cachetest.NewServer(h)
		defer srv.Close()
		in := watchOver(t, t.Context(), srv, "/api/v1/pods?watch=1")
		require.Equal(t, "ADDED a/1 @1", in.next())
		srv.Listener.CutConnections()
		synctest.Wait()
		require.Zero(t, pods.ActiveWatches(), "the server notices")
		for got := in.next(); ; got = in.next() {
			require.NotEqual(t, "EOF", got)
			if strings.Contains(got, "connection reset") {
				break
			}
		}

		srv.Listener.CutNext(1, 300)
		resp, err := srv.Client().Get(srv.URL + "/api/v1/pods")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.NotEmpty(t, body)
		require.NoError(t, resp.Body.Close())
	})
}

func TestAFrozenHTTPWatchOnlyEndsByItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, pods, _, _ := cluster(t)
		srv := cachetest.NewServer(h)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		in := watchOver(t, ctx, srv, "/api/v1/pods?watch=1&resourceVersion=4&timeoutSeconds=60")
		srv.Listener.Freeze()
		apply(t, pods, pod("a", "1"))
		require.Contains(t, in.next(), "deadline")
		require.Equal(t, time.Hour, time.Since(start))
		srv.Listener.Thaw()
		in = watchOver(t, t.Context(), srv, "/api/v1/pods?watch=1&resourceVersion=5")
		srv.Listener.Freeze()
		srv.Close()
		require.Contains(t, in.next(), "connection reset")
	})
}

func TestCloseOfAServerWaitsForItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var srv *cachetest.Server
		started, ended := make(chan struct{}), false
		srv = cachetest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(started)
			<-r.Context().Done()
			time.Sleep(time.Second)
			ended = true
		}))
		failed := make(chan error)
		go func() {
			_, err := srv.Client().Get(srv.URL)
			failed <- err
		}()
		<-started
		srv.Close()
		require.True(t, ended)
		require.Error(t, <-failed)
	})
}
