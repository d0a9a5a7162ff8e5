package statuspage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/option"
)

// ServeOptions configures Serve. All fields are optional.
type ServeOptions struct {
	// AnyAddress permits addresses other than loopback, and requests for any host. Every client
	// that can reach the address sees the keys and objects: there is no authentication and no
	// encryption.
	AnyAddress bool
	// Listening is called with the address, which has the actual port even for :0, before requests
	// are served.
	Listening func(net.Addr)
}

// ErrNotLoopback: Serve refused an address.
var ErrNotLoopback = errors.New("not a loopback address, " +
	"and there is no authentication: set ServeOptions.AnyAddress to permit it")

// Serve serves the registry's pages at addr (host:port) and runs the registry until ctx ends. Then
// it waits for running requests, for at most 5 s, and returns nil. It refuses addresses that are
// not loopback. It also refuses requests for a host that is not loopback, since a web page can make
// a browser send them.
func Serve(ctx context.Context, addr string, registry *Registry, options ...ServeOptions) error {
	o := option.AtMostOne("statuspage: Serve", options)
	listener, err := listen(ctx, addr, o.AnyAddress)
	if err != nil {
		return fmt.Errorf("serve status page on %s: %w", addr, err)
	}
	handler := Handler(registry)
	if !o.AnyAddress {
		handler = onlyLoopbackHosts(handler)
	}
	root := http.NewServeMux()
	root.Handle("/{$}", handler)
	server := newServer(root)
	if o.Listening != nil {
		o.Listening(listener.Addr())
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { registry.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		shutdown(server)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve status page on %s: %w", addr, err)
	}
	return nil
}

// newServer returns a server whose connections all end: also those on which a request or its body
// never arrives.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:        handler,
		ReadTimeout:    5 * time.Second,
		WriteTimeout:   30 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 1 << 14,
	}
}

// shutdown waits for running requests, for at most 5 s.
func shutdown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // closes the remaining connections
	}
}

// listen resolves the host once, so that the checked address is the one it listens on.
func listen(ctx context.Context, addr string, anyAddress bool) (net.Listener, error) {
	var config net.ListenConfig
	if anyAddress {
		return config.Listen(ctx, "tcp", addr)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		return nil, ErrNotLoopback // would listen on all addresses
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if !address.Unmap().IsLoopback() {
			return nil, ErrNotLoopback
		}
	}
	return config.Listen(ctx, "tcp", net.JoinHostPort(addresses[0].Unmap().String(), port))
}

// onlyLoopbackHosts refuses requests whose host is not loopback. Otherwise a web page whose name
// resolves to a loopback address (DNS rebinding) could read the status through a browser.
func onlyLoopbackHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		address, err := netip.ParseAddr(trimBrackets(host))
		if host != "localhost" && (err != nil || !address.Unmap().IsLoopback()) {
			text := "this address answers requests for loopback hosts only"
			http.Error(w, text, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
