package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmirror/cache/benchmarks/pods"
)

// Path is where the pods are.
const Path = "/api/v1/pods"

// pieceBytes is how much is handed to the socket at once.
const pieceBytes = 64 << 10

// handler answers lists and watches of the pods.
type handler struct {
	Config
	text     text
	protobuf format
}

// NewHandler makes a server's handler. It may be called concurrently, and keeps no more
// than the templates of the pods.
func NewHandler(config Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, &handler{config, newTextFormat(), newProtobufFormat()})
	return mux
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	format := h.accepted(r.Header.Get("Accept"))
	if query.Get("watch") == "true" || query.Get("watch") == "1" {
		h.watch(w, r, format, query)
		return
	}
	w.Header().Set("Content-Type", format.mediaType(false))
	h.list(w, format, h.asked(query))
}

// page is a part of the list: pods from, to but not including.
type page struct{ from, to int }

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

// accepted is the first format of those that are asked for, JSON if there is none.
func (h *handler) accepted(accept string) format {
	for wanted := range strings.SplitSeq(accept, ",") {
		media, _, _ := strings.Cut(strings.TrimSpace(wanted), ";")
		for _, format := range []format{h.text, h.protobuf} {
			if media == format.mediaType(false) {
				return format
			}
		}
	}
	return h.text
}

// version is the one of the list: each pod has another one up to it.
func (h *handler) version() uint64 { return uint64(h.Pods) }

func (h *handler) list(w io.Writer, format format, p page) {
	about := metav1.ListMeta{ResourceVersion: pods.Version(h.version())}
	if p.to < h.Pods {
		remaining := int64(h.Pods - p.to)
		about.Continue, about.RemainingItemCount = strconv.Itoa(p.to), &remaining
	}
	piece := format.listBegin(make([]byte, 0, pieceBytes+pieceBytes/2), about, p)
	for i := p.from; i < p.to; i++ {
		piece = format.listItem(piece, i, uint64(i+1), i == p.from)
		if len(piece) >= pieceBytes {
			if _, err := w.Write(piece); err != nil {
				return // the client has disconnected
			}
			piece = piece[:0]
		}
	}
	_, _ = w.Write(format.listEnd(piece))
}

// watch sends the initial events if it should, the changes, and then nothing until its
// reader disconnects. No workload has events in protobuf, so they are text.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, format format, query url.Values) {
	initial := query.Get("sendInitialEvents") == "true"
	if initial && !h.Streams {
		refuseToStream(w)
		return
	}
	w.Header().Set("Content-Type", format.mediaType(true))
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	if err := out.Flush(); err != nil {
		return
	}
	frames := make([]byte, 0, pieceBytes+pieceBytes/2)
	send := func(least int) bool {
		if len(frames) < least {
			return true
		}
		_, err := w.Write(frames)
		frames = frames[:0]
		return err == nil
	}
	if initial {
		for i := range h.Pods {
			frames = h.text.event(frames, "ADDED", i, uint64(i+1))
			if !send(pieceBytes) {
				return
			}
		}
		frames = h.text.bookmark(frames, h.version())
	}
	for n := range h.Events {
		frames = h.text.event(frames, "MODIFIED", n%h.Pods, h.version()+1+uint64(n))
		if !send(pieceBytes) {
			return
		}
	}
	if !send(1) || out.Flush() != nil {
		return
	}
	<-r.Context().Done()
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
