package cachetest

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one collection that a Handler serves.
type Resource struct {
	// GroupVersionResource determines the path: resource "pods" of version "v1" is served at
	// /api/v1/pods, one with a group at /apis/GROUP/VERSION/RESOURCE.
	GroupVersionResource schema.GroupVersionResource
	// Kind is set on objects without one, such as typed objects, and determines the list's kind.
	// Default: that of the source's GroupVersionKind.
	Kind string
	// ClusterScoped resources are not served under /namespaces/NAMESPACE.
	ClusterScoped bool
	// Source has the objects.
	Source *Source
}

// HandlerOptions configure a Handler.
type HandlerOptions struct {
	Resources []Resource
	// Token is the bearer token that every request must have; other requests fail with 401
	// Unauthorized. Empty accepts all requests.
	Token string
}

// Handler serves sources over HTTP in JSON, like a Kubernetes API server: list and watch a
// resource, in one namespace or all, and get one object. Other requests fail with a Status. It may
// be used concurrently.
//
// A request whose Accept header prefers PartialObjectMetadata, as those of client-go's metadata
// client, gets only the metadata. One that accepts neither that nor JSON, but Table, YAML or
// protobuf, fails with 406 NotAcceptable.
type Handler struct {
	resources map[schema.GroupVersionResource]served
	token     string
}

// served is a resource with its defaults set.
type served struct {
	Resource
	kind schema.GroupVersionKind
}

// NewHandler returns a handler. It panics if a resource has no source, version or name, or is
// defined twice.
func NewHandler(options HandlerOptions) *Handler {
	h := &Handler{resources: map[schema.GroupVersionResource]served{}, token: options.Token}
	for i, r := range options.Resources {
		gvr := r.GroupVersionResource
		_, twice := h.resources[gvr]
		switch {
		case r.Source == nil:
			panic(fmt.Sprintf(
				"cachetest.NewHandler: Resources[%d] (%s) has no Source", i, gvr.Resource))
		case gvr.Version == "" || gvr.Resource == "":
			panic(fmt.Sprintf(
				"cachetest.NewHandler: Resources[%d] needs a version and a resource in "+
					"GroupVersionResource, got %q",
				i, gvr.String()))
		case twice:
			panic(fmt.Sprintf(
				"cachetest.NewHandler: Resources[%d]: %s is there twice", i, gvr.String()))
		}
		kind := r.Kind
		if kind == "" {
			kind = r.Source.options.GroupVersionKind.Kind
		}
		h.resources[gvr] = served{Resource: r, kind: gvr.GroupVersion().WithKind(kind)}
	}
	return h
}

// ServeHTTP implements http.Handler. It serves a watch until the watch or the request's context
// ends.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.authorize(r); err != nil {
		writeError(w, err)
		return
	}
	asked, err := parsePath(r.URL.Path)
	if err != nil {
		writeError(w, err)
		return
	}
	resource, known := h.resources[asked.resource]
	if !known || (resource.ClusterScoped && asked.namespace != "") {
		writeError(w, errNoSuchPath())
		return
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		writeError(
			w,
			apierrors.NewMethodNotSupported(
				asked.resource.GroupResource(), strings.ToLower(r.Method)),
		)
		return
	}
	opts, err := parseOptions(r.URL.Query())
	if err != nil && asked.name == "" {
		writeError(w, err)
		return
	}
	as, err := negotiate(r, resource.kind, asked.name == "" && !opts.Watch)
	switch {
	case err != nil:
		writeError(w, err)
	case asked.name != "":
		resource.get(w, asked, as)
	case opts.Watch:
		resource.watch(w, r, asked, opts, as)
	default:
		resource.list(w, r, asked, opts, as)
	}
}

func (h *Handler) authorize(r *http.Request) error {
	if h.token == "" {
		return nil
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if bearer && subtle.ConstantTimeCompare([]byte(given), []byte(h.token)) == 1 {
		return nil
	}
	return apierrors.NewUnauthorized("Unauthorized")
}

// target is the resource or object that a path identifies.
type target struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// parsePath parses a path of an API server. "namespaces" is itself a resource unless another
// resource follows the namespace's name. One trailing slash is allowed. An empty segment is
// refused: with an empty namespace, a client would get all namespaces.
func parsePath(path string) (target, error) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	var t target
	switch {
	case slices.Contains(parts, ""):
		return t, errNoSuchPath()
	case len(parts) > 2 && parts[0] == "api":
		t.resource.Version = parts[1]
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.resource.Group = parts[1]
		t.resource.Version = parts[2]
		parts = parts[3:]
	default:
		return t, errNoSuchPath()
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace = parts[1]
		parts = parts[2:]
	}
	switch len(parts) {
	case 2:
		t.name = parts[1]
	case 1:
	default:
		// A subresource, which a source does not have.
		return t, errNoSuchPath()
	}
	t.resource.Resource = parts[0]
	return t, nil
}

// parseOptions parses the query by the rules of API servers.
func parseOptions(query url.Values) (metav1.ListOptions, error) {
	var opts metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil); err != nil {
		return opts, apierrors.NewBadRequest(fmt.Sprintf("query: %v", err))
	}
	return opts, nil
}

func (r served) get(w http.ResponseWriter, asked target, as representation) {
	obj, err := r.Source.Get(asked.namespace, asked.name)
	if err != nil {
		writeError(w, err)
		return
	}
	body, err := encodeObject(as.of(obj), as.kind)
	writeBody(w, http.StatusOK, body, err)
}

func (r served) list(
	w http.ResponseWriter,
	req *http.Request,
	asked target,
	opts metav1.ListOptions,
	as representation,
) {
	list, err := r.Source.list(req.Context(), asked.namespace, opts)
	if err != nil {
		writeError(w, err)
		return
	}
	body, err := encodeList(list, as)
	writeBody(w, http.StatusOK, body, err)
}

// watch sends frames, each flushed, until the watch ends. The source ends the watch when the
// request's context ends.
func (r served) watch(
	w http.ResponseWriter,
	req *http.Request,
	asked target,
	opts metav1.ListOptions,
	as representation,
) {
	events, err := r.Source.watch(req.Context(), asked.namespace, opts)
	if err != nil {
		writeError(w, err)
		return
	}
	defer events.Stop()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		// Flush also before the first event, so that the client sees the open watch. If the writer
		// cannot flush, frames are delayed.
		_ = out.Flush()
		event, open := <-events.ResultChan()
		if !open {
			return
		}
		frame, err := encodeFrame(event, as)
		if err != nil {
			frame, _ = encodeFrame(errorEvent(err), as)
		}
		if _, writeErr := w.Write(frame); writeErr != nil || err != nil {
			return
		}
	}
}

// writeError responds with the Status of err. A network error, which no server can send, cuts the
// connection instead.
func writeError(w http.ResponseWriter, err error) {
	var network net.Error
	var status apierrors.APIStatus
	isCut := errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if isCut && !errors.As(err, &status) {
		panic(http.ErrAbortHandler)
	}
	answer := statusOf(err)
	code := int(answer.Code)
	if code < 400 || code > 599 {
		code = http.StatusInternalServerError
	}
	if d := answer.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	body, encodeErr := encodeObject(answer, schema.GroupVersionKind{})
	writeBody(w, code, body, encodeErr)
}

// writeBody responds with JSON, or with an error if err is not nil.
func writeBody(w http.ResponseWriter, code int, body []byte, err error) {
	if err != nil {
		// A Status can always be encoded, so this does not recurse further.
		writeError(w, apierrors.NewInternalError(fmt.Errorf("encoding the answer: %w", err)))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// Ignore the error of a client that has disconnected.
	_, _ = w.Write(body)
}

func errNotAcceptable(metadata string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusNotAcceptable,
		Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: application/json, " +
			"application/json;as=" + metadata + ";v=v1;g=" + metav1.GroupName,
		Details: &metav1.StatusDetails{},
	}}
}

func errNoSuchPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}
