package apiserver

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmirror/cache/benchmarks/pods"
)

// Config is what a server serves, and which of the protocol's variants.
type Config struct {
	// Pods is how many pods there are.
	Pods int
	// Events is how many of them change once a watch has begun, one after the other and as fast as
	// the watch's reader reads. Every watch sees that many.
	Events int
	// Paged makes lists have the pages that are asked for, as those of a server without a watch
	// cache. Without it a list is whole, whatever limit it asks for: so do servers with a watch
	// cache, when no exact version is asked for.
	Paged bool
	// Streams makes the server answer a watch with sendInitialEvents, which it otherwise refuses,
	// as servers before Kubernetes 1.32 do.
	Streams bool
}

// format is how lists are encoded. All methods append to what they are given.
type format interface {
	mediaType(watch bool) string

	listBegin(to []byte, about metav1.ListMeta, p page) []byte
	listItem(to []byte, i int, version uint64, first bool) []byte
	listEnd(to []byte) []byte
}

// page is a part of the list: pods from, to but not including.
type page struct{ from, to int }

// handler answers lists and watches of the pods.
type handler struct {
	Config
	text     text
	protobuf protobuf
}

// NewHandler makes a server's handler. It may be called concurrently, and keeps no more than the
// templates of the pods.
func NewHandler(config Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/pods", &handler{config, text{pods.JSON()}, protobuf{pods.Protobuf()}})
	return mux
}

// pieceBytes is how much is handed to the socket at once.
const pieceBytes = 64 << 10

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var format format = h.text
	if strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		format = h.protobuf
	}
	query := r.URL.Query()
	isWatch := query.Get("watch") == "true" || query.Get("watch") == "1"
	isInitial := query.Get("sendInitialEvents") == "true"
	if isInitial && !h.Streams {
		refuseToStream(w)
		return
	}
	w.Header().Set("Content-Type", format.mediaType(isWatch))
	out := bufio.NewWriterSize(w, pieceBytes)
	if !isWatch {
		h.list(out, format, h.asked(query))
		_ = out.Flush()
		return
	}
	flusher := http.NewResponseController(w)
	_ = flusher.Flush() // the watch has begun
	h.watch(out, isInitial)
	_ = out.Flush()
	_ = flusher.Flush()
	<-r.Context().Done()
}

// asked is the page that a list asks for. Its clients are those of the measurements, which send
// back the token that they received; another one begins at the first pod.
func (h *handler) asked(query url.Values) page {
	p := page{0, h.Pods}
	if from, err := strconv.Atoi(query.Get("continue")); err == nil {
		p.from = from
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err == nil && limit > 0 && h.Paged {
		p.to = min(h.Pods, p.from+limit)
	}
	return p
}

// version is that of the list. Pod i has version i+1.
func (h *handler) version() uint64 { return uint64(h.Pods) }

// list writes a page. The client may disconnect at any time: out keeps the error.
func (h *handler) list(out *bufio.Writer, format format, p page) {
	about := metav1.ListMeta{ResourceVersion: pods.Version(h.version())}
	if p.to < h.Pods {
		remaining := int64(h.Pods - p.to)
		about.Continue = strconv.Itoa(p.to)
		about.RemainingItemCount = &remaining
	}
	_, err := out.Write(format.listBegin(nil, about, p))
	var item []byte
	for i := p.from; i < p.to && err == nil; i++ {
		item = format.listItem(item[:0], i, uint64(i+1), i == p.from)
		_, err = out.Write(item)
	}
	_, _ = out.Write(format.listEnd(nil))
}

// watch writes the initial events, if it should, and the changes. No workload has events in
// protobuf, so they are JSON.
func (h *handler) watch(out *bufio.Writer, isInitial bool) {
	var event []byte
	var err error
	if isInitial {
		for i := 0; i < h.Pods && err == nil; i++ {
			event = h.text.event(event[:0], "ADDED", i, uint64(i+1))
			_, err = out.Write(event)
		}
		_, _ = out.Write(h.text.bookmark(nil, h.version()))
	}
	for n := 0; n < h.Events && err == nil; n++ {
		event = h.text.event(event[:0], "MODIFIED", n%h.Pods, h.version()+1+uint64(n))
		_, err = out.Write(event)
	}
}

// refuseToStream answers as servers before Kubernetes 1.32 do, in JSON, which every client
// understands.
func refuseToStream(w http.ResponseWriter) {
	kind := schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}
	const reason = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
	forbidden := field.Forbidden(field.NewPath("sendInitialEvents"), reason)
	status := apierrors.NewInvalid(kind, "", field.ErrorList{forbidden}).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
