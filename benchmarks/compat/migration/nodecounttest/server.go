package nodecounttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

var configMapResource = schema.GroupResource{Resource: "configmaps"}

// Server is an API server in memory: pods that can be listed and watched, and config maps
// that can be written too. A write is an apply patch, which creates an absent object, or
// a DELETE. It owns no fields and merges nothing: the patch becomes the object.
type Server struct {
	*cachetest.Server
	Pods, ConfigMaps *cachetest.Source

	read http.Handler

	mu     sync.Mutex
	writes []string // method and key, of those that succeeded
	refuse int      // how many are still to fail
}

// NewServer starts a server; Close ends it.
func NewServer() *Server {
	s := &Server{Pods: newSource("Pod", "pods"), ConfigMaps: newSource("ConfigMap", "configmaps")}
	s.read = cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Source: s.Pods},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Source: s.ConfigMaps},
	}})
	s.Server = cachetest.NewServer(s)
	return s
}

func newSource(kind, resource string) *cachetest.Source {
	return cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind},
		Resource:         schema.GroupResource{Resource: resource},
	})
}

// Close ends the server and its sources.
func (s *Server) Close() {
	s.Server.Close()
	s.Pods.Close()
	s.ConfigMaps.Close()
}

// RefuseWrites has the next writes fail.
func (s *Server) RefuseWrites(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = n
}

// TakeWrites returns the writes that have succeeded since it was last called.
func (s *Server) TakeWrites() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := s.writes
	s.writes = nil
	return done
}

// ServeHTTP reads by cachetest, and writes config maps.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.read.ServeHTTP(w, r)
		return
	}
	answer, err := s.write(r)
	code := http.StatusOK
	if err != nil {
		answer, code = statusOf(err), int(statusOf(err).Code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client may have disconnected.
	_ = json.NewEncoder(w).Encode(answer)
}

func statusOf(err error) *metav1.Status {
	status := apierrors.NewInternalError(err).Status()
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

func (s *Server) write(r *http.Request) (any, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	path, found := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
	namespace, name, named := strings.Cut(path, "/configmaps/")
	if !found || !named {
		return nil, apierrors.NewMethodNotSupported(configMapResource, r.Method)
	}
	answer, err := s.writeOne(r, namespace, name)
	if err == nil {
		s.mu.Lock()
		s.writes = append(s.writes, r.Method+" "+namespace+"/"+name)
		s.mu.Unlock()
	}
	return answer, err
}

func (s *Server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse == 0 {
		return nil
	}
	s.refuse--
	return apierrors.NewForbidden(configMapResource, "", errors.New("the test says so"))
}

func (s *Server) writeOne(r *http.Request, namespace, name string) (any, error) {
	switch {
	case r.Method == http.MethodDelete:
		if _, err := s.ConfigMaps.Delete(namespace, name); err != nil {
			return nil, err
		}
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") == "application/apply-patch+yaml":
	default:
		return nil, apierrors.NewMethodNotSupported(configMapResource, r.Method)
	}
	if r.URL.Query().Get("fieldManager") == "" {
		return nil, apierrors.NewBadRequest("an apply patch needs a fieldManager")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(body); err != nil { // JSON is YAML, and what clients send
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if applied.GetNamespace() != namespace || applied.GetName() != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the path is that of %s/%s, the object is %s/%s",
			namespace, name, applied.GetNamespace(), applied.GetName()))
	}
	if err := s.ConfigMaps.Apply(applied); err != nil {
		return nil, err
	}
	return s.ConfigMaps.Get(namespace, name)
}
