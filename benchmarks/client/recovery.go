package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache/benchmarks/sides"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/internal/bubble"
)

// Fault is what a server does to its clients before Recovery takes the time.
type Fault string

// The faults. The content of the server changes during each of them.
const (
	WatchCut      Fault = "watch cut"
	ThreeCuts     Fault = "3 watches cut in a row"
	Refused1s     Fault = "connections refused for 1 s"
	Refused10s    Fault = "connections refused for 10 s"
	Refused30s    Fault = "connections refused for 30 s"
	Throttled     Fault = "429 with Retry-After 5 for 10 s"
	Internal      Fault = "500 for 10 s"
	Unavailable   Fault = "503 for 15 s"
	Expired       Fault = "refused for 10 s, then 410"
	HalfOpen      Fault = "half-open connection"
	RestoredOlder Fault = "restored from an older copy"
)

// Faults are all of them.
var Faults = []Fault{WatchCut, ThreeCuts, Refused1s, Refused10s, Refused30s, Throttled, Internal, Unavailable, Expired, HalfOpen, RestoredOlder}

// NeverRecovered is the time of a cache that does not equal its source within it: an hour.
const NeverRecovered = 3600.0

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// recovery takes, Count times, the time from the end of a fault until the informer's content equals the server's, in virtual time and
// over HTTP: Median and Longest.
func (t Task) recovery(context.Context) (result Result, err error) {
	// apimachinery's handler sleeps until it is a millisecond after the last error, which in another bubble was years later.
	utilruntime.ErrorHandlers = nil
	failed := inTest(func(test *testing.T) {
		var times []float64
		for n := range t.Count {
			synctest.Test(test, func(*testing.T) {
				seconds, failed := t.recoverOnce(time.Duration(n) * 7 * time.Second)
				times, err = append(times, seconds), errors.Join(err, failed)
			})
		}
		slices.Sort(times)
		result = Result{Items: t.Count, Median: times[len(times)/2], Longest: times[len(times)-1]}
	})
	return result, errors.Join(err, failed)
}

var errTestFailed = errors.New("the test failed")

// inTest calls f with what a bubble needs. It may be called once in a process.
func inTest(f func(test *testing.T)) error {
	stdout := os.Stdout
	os.Stdout = os.Stderr // the testing package prints PASS
	defer func() { os.Stdout = stdout }()
	if code := bubble.InTest(f); code != 0 {
		return errTestFailed
	}
	return nil
}

// faultyServer is a server of config maps.
type faultyServer struct {
	*cachetest.Source
	server *cachetest.Server
}

// recoverOnce measures one fault, which comes when the informer has been healthy for some minutes.
func (t Task) recoverOnce(later time.Duration) (seconds float64, err error) {
	s := faultyServer{Source: cachetest.NewSource(cachetest.Options{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}})}
	defer s.Close()
	for i := range t.Items {
		if err := s.write(i, 0); err != nil {
			return 0, err
		}
	}
	s.server = cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: configMaps, Source: s.Source}},
	}))
	defer s.server.Close()
	informer, err := sides.NewRemoteInformer(t.Side, s.server.URL, s.server.Client(), configMaps)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	time.Sleep(4*time.Minute + later)
	if !s.equals(informer) {
		return 0, errors.New("the informer does not equal the source before the fault")
	}
	if err := s.fail(t.Fault); err != nil {
		return 0, err
	}
	began, look := time.Now(), 10*time.Millisecond
	for !s.equals(informer) {
		time.Sleep(look)
		switch time.Since(began).Truncate(time.Second).Seconds() {
		case 60:
			look = time.Second
		case NeverRecovered:
			return NeverRecovered, nil
		}
	}
	return time.Since(began).Seconds(), nil
}

// fail does a fault, and returns when the server is well again.
func (s faultyServer) fail(fault Fault) error {
	switch fault {
	case WatchCut:
		return s.away(0, nil)
	case ThreeCuts:
		for range 2 {
			s.server.Listener.CutConnections()
			for synctest.Wait(); s.ActiveWatches() == 0; {
				time.Sleep(time.Millisecond)
			}
		}
		return s.away(0, nil)
	case Refused1s:
		return s.away(time.Second, nil)
	case Refused10s:
		return s.away(10*time.Second, nil)
	case Refused30s:
		return s.away(30*time.Second, nil)
	case Throttled:
		return s.away(10*time.Second, cachetest.ErrTooManyRequests(5))
	case Internal:
		return s.away(10*time.Second, cachetest.ErrInternal())
	case Unavailable:
		return s.away(15*time.Second, apierrors.NewServiceUnavailable("starting"))
	case Expired:
		err := s.away(10*time.Second, nil)
		s.CompactAll()
		return err
	case HalfOpen:
		s.Silence()
		s.OnWatch(func(metav1.ListOptions) error { // only the watches that are open now are silent
			s.Resume()
			return nil
		})
		return s.change(1)
	case RestoredOlder:
		version := s.Version()
		if err := s.change(1); err != nil {
			return err
		}
		time.Sleep(time.Minute)
		return s.Rollback(version)
	}
	return fmt.Errorf("no fault %q", fault)
}

// away cuts the connections, and then refuses new ones, or answers requests with an error, for some time.
func (s faultyServer) away(pause time.Duration, answer error) error {
	if answer == nil {
		s.server.Listener.RefuseConnections(true)
	} else {
		s.OnList(func(metav1.ListOptions) error { return answer })
		s.OnWatch(func(metav1.ListOptions) error { return answer })
	}
	s.server.Listener.CutConnections()
	err := s.change(1)
	time.Sleep(pause)
	s.server.Listener.RefuseConnections(false)
	s.OnList(nil)
	s.OnWatch(nil)
	return err
}

// write stores a state of an object.
func (s faultyServer) write(i, state int) error {
	return s.Apply(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "default", "name": objectName(i)},
		"data":     map[string]any{"state": strconv.Itoa(state)},
	}})
}

func objectName(i int) string { return fmt.Sprintf("object-%03d", i) }

// change updates an object, deletes one and adds one.
func (s faultyServer) change(state int) error {
	_, err := s.Delete("default", objectName(1))
	return errors.Join(s.write(0, state), err, s.write(999, state))
}

// equals compares all names and versions.
func (s faultyServer) equals(informer *sides.RemoteInformer) bool {
	versions := map[string]string{}
	for _, obj := range s.Objects() {
		object := obj.(metav1.Object)
		versions[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
	return maps.Equal(versions, informer.Versions())
}
