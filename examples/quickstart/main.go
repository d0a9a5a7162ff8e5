// Quickstart mirrors an API into memory, cuts the connection, and checks that the mirror equals its
// source. The lines to copy are in mirror.go.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -status 127.0.0.1:8090 -for 10m    (and open that address in a browser)
//	go run ./examples/quickstart -server http://127.0.0.1:8001 -resource apps/v1/deployments    (behind kubectl proxy)
//	go run ./examples/quickstart -server https://127.0.0.1:6443 -ca ca.crt
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/statuspage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// show is one run of the program.
type show struct {
	out    io.Writer
	lasts  time.Duration
	status string // where to serve the status page, if anywhere
	source *narrator
	// content is what is mirrored, for a mirror that is empty.
	content string
	// demo is nil for a server of the -server flag, whose connections are not cut.
	demo *demoServer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	server := flags.String("server", "", "mirror the API at this `URL`, for example http://127.0.0.1:8001")
	resource := flags.String("resource", "pods", "what to mirror, as `group/version/plural`; without a group, of the core API")
	namespace := flags.String("namespace", "", "only this `namespace`")
	ca := flags.String("ca", "", "trust the certificates in this `file`, of a server at an https address")
	status := flags.String("status", "", "serve a status page at this `address`, for example 127.0.0.1:8090")
	lasts := flags.Duration("for", 12*time.Second, "how long to mirror before the check")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s := &show{out: &lockedWriter{w: out}, lasts: *lasts, status: *status}
	options := kubeapi.Options{BaseURL: *server, Resource: parseResource(*resource), Namespace: *namespace}
	if *server == "" {
		demo, err := startDemoServer()
		if err != nil {
			return err
		}
		defer demo.stop()
		s.demo, options.BaseURL, options.HTTPClient = demo, demo.URL, demo.Client()
	}
	if *ca != "" {
		client, err := kubeapi.ClientWithCA(*ca)
		if err != nil {
			return err
		}
		options.HTTPClient = client
	}
	source, err := kubeapi.New(options)
	if err != nil {
		return err
	}
	s.content = *resource
	if *namespace != "" {
		s.content = fmt.Sprintf("%s in namespace %q", *resource, *namespace)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	s.source = &narrator{ListerWatcher: source, out: s.out, resource: s.content, giveUp: giveUp}
	fmt.Fprintf(s.out, "mirroring %s of %s for %v\n", s.content, options.BaseURL, s.lasts)
	// Failures are printed, and so not logged.
	err = mirror(klog.NewContext(ctx, klog.Logger{}), s.source, s.out, s.useWithStatus)
	if refused, ok := errors.AsType[*refusedError](context.Cause(ctx)); ok {
		return refused
	}
	return err
}

// parseResource reads group/version/plural; the core group has none, and its version is v1.
func parseResource(text string) schema.GroupVersionResource {
	switch parts := strings.Split(text, "/"); len(parts) {
	case 1:
		return schema.GroupVersionResource{Version: "v1", Resource: text}
	case 2:
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}
	default:
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	}
}

// useWithStatus is use with a status page, if requested, which also shows why there is no first
// list. If the page cannot be served, the program ends.
func (s *show) useWithStatus(ctx context.Context, informer *cache.Informer[Object]) error {
	if s.status == "" {
		return s.use(ctx, informer)
	}
	var registry statuspage.Registry
	if _, err := registry.Add("quickstart", informer); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listening, served := make(chan struct{}), make(chan error, 1)
	go func() {
		defer cancel()
		served <- statuspage.Serve(ctx, s.status, &registry, statuspage.ServeOptions{Listening: func(addr net.Addr) {
			fmt.Fprintf(s.out, "status page: http://%v\n", addr)
			close(listening)
		}})
	}()
	select {
	case <-listening:
	case err := <-served:
		return err
	}
	err := s.use(ctx, informer)
	cancel()
	return errors.Join(<-served, err)
}

// use prints the mirror's content, cuts the connection and checks that the mirror recovers.
func (s *show) use(ctx context.Context, informer *cache.Informer[Object]) error {
	if err := waitSynced(ctx, informer, max(s.lasts, time.Minute)); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "synced: %d objects at version %s\n", informer.Len(), informer.ResourceVersion())
	if informer.Len() == 0 {
		fmt.Fprintf(s.out, "there are no %s\n", s.content)
	}
	onNode, err := informer.ByIndex("node", "node-3")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "the index by node has %d objects on node-3\n", len(onNode))
	if s.demo == nil {
		sleep(ctx, s.lasts)
		return s.check(ctx, informer)
	}

	s.source.awaitWatch(ctx, 1)
	changing, end := context.WithTimeout(ctx, s.lasts)
	defer end()
	changed := make(chan error, 1)
	go func() { changed <- s.demo.change(changing) }()
	sleep(changing, s.lasts/3)
	fmt.Fprintf(s.out, "cutting every connection, and refusing new ones for %v; the pods keep changing\n", cutFor)
	s.demo.Listener.RefuseConnections(true)
	opened := s.source.watches.Load()
	s.demo.Listener.CutConnections()
	sleep(changing, cutFor)
	fmt.Fprintln(s.out, "accepting connections again")
	s.demo.Listener.RefuseConnections(false)
	if err := <-changed; err != nil {
		return err
	}
	s.source.awaitWatch(ctx, opened+1)
	if err := s.check(ctx, informer); err != nil {
		return err
	}
	fmt.Fprint(s.out, epilogue)
	return nil
}

// epilogue is printed after the demo. client-go's reflector retries a cut or refused connection
// too, but has neither a status nor a check.
const epilogue = `with client-go: the same changes, failures only in the log, no comparison with the source
try next:
  go run ./examples/quickstart -status 127.0.0.1:8090 -for 10m    (open the address in a browser)
  kubectl proxy, and go run ./examples/quickstart -server http://127.0.0.1:8001    (your own cluster)
`

// check compares the mirror with a list of its source. A source that changes meanwhile is compared
// again.
func (s *show) check(ctx context.Context, informer *cache.Informer[Object]) (err error) {
	for try := 0; try < 120 && ctx.Err() == nil; try++ {
		list, failed := s.source.everything(ctx)
		if failed != nil {
			return failed
		}
		if err = difference(list, maps.Collect(informer.All())); err == nil {
			status := informer.Status()
			fmt.Fprintf(s.out, "the mirror equals the source: %d objects, version %s, phase %s\n",
				len(list), status.AppliedVersion, status.Phase)
			return nil
		}
		sleep(ctx, 500*time.Millisecond)
	}
	return errors.Join(err, ctx.Err())
}

// difference is an error that names a key in which a list and the mirror differ.
func difference(list []runtime.Object, mirrored map[string]Object) error {
	for _, object := range list {
		key := cache.MetaObjectToName(object.(Object)).String()
		have, exists := mirrored[key]
		if delete(mirrored, key); !exists || !equality.Semantic.DeepEqual(have, object) {
			return fmt.Errorf("the mirror differs from the source in %s", key)
		}
	}
	for key := range mirrored {
		return fmt.Errorf("the mirror has %s, the source has not", key)
	}
	return nil
}

// narrator is a source that prints its requests. It gives up if the server refuses the resource at
// the start.
type narrator struct {
	*kubeapi.ListerWatcher
	out      io.Writer
	resource string
	giveUp   context.CancelCauseFunc
	answered atomic.Bool // the server has answered a list or watch
	watches  atomic.Int32
}

// WatchWithContext opens a watch. A reflector makes one call at a time.
func (n *narrator) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := n.ListerWatcher.WatchWithContext(ctx, options)
	if err != nil {
		// A resource that cannot be watched may still be listed.
		if !apierrors.IsMethodNotSupported(err) {
			n.giveUpIfRefused(err)
		}
		return nil, err
	}
	n.answered.Store(true)
	if n.watches.Add(1) > 1 {
		fmt.Fprintf(n.out, "watching again from version %s, without a list\n", options.ResourceVersion)
	}
	return w, nil
}

// ListItems lists the resource, as the reflector does.
func (n *narrator) ListItems(
	ctx context.Context, options metav1.ListOptions, take func(metav1.ListMeta, runtime.Object) error,
) (metav1.ListMeta, error) {
	list, err := n.ListerWatcher.ListItems(ctx, options, take)
	if err != nil {
		n.giveUpIfRefused(err)
		return list, err
	}
	n.answered.Store(true)
	return list, nil
}

// refusedError is the error for a resource that the server does not have or does not list.
type refusedError struct {
	text string
	err  error
}

func (e *refusedError) Error() string { return e.text + ": " + e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

// giveUpIfRefused ends the program if the first answer shows that the resource cannot be mirrored.
// Repeating the request would not help.
func (n *narrator) giveUpIfRefused(err error) {
	if n.answered.Load() {
		return
	}
	switch {
	case apierrors.IsNotFound(err):
		n.giveUp(&refusedError{
			text: fmt.Sprintf("the server has no %s: name it as group/version/plural, for example apps/v1/deployments", n.resource),
			err:  err,
		})
	case apierrors.IsMethodNotSupported(err):
		n.giveUp(&refusedError{text: n.resource + " cannot be listed", err: err})
	}
}

// awaitWatch waits until so many watches have been opened, for at most a minute.
func (n *narrator) awaitWatch(ctx context.Context, watches int32) {
	for try := 0; try < 6000 && n.watches.Load() < watches && ctx.Err() == nil; try++ {
		sleep(ctx, 10*time.Millisecond)
	}
}

// everything lists the source directly.
func (n *narrator) everything(ctx context.Context) ([]runtime.Object, error) {
	list, err := n.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return meta.ExtractList(list)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// lockedWriter may be written to concurrently.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(text)
}
