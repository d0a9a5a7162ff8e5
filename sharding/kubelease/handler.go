package kubelease

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Handler serves Lease objects in memory like an API server, for tests and examples: list by a label, create, update,
// delete. As there, an update without a UID creates a missing Lease. The zero value is ready to use and must not be
// copied. It may be used concurrently.
type Handler struct {
	mu      sync.Mutex
	objects []object
	version int
}

// ServeHTTP implements http.Handler. The path is that of an API server:
// /apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, path, matches := strings.Cut(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/")
	namespace, rest, _ := strings.Cut(path, "/")
	name, isLeases := strings.CutPrefix(rest, "leases")
	if !matches || !isLeases {
		writeError(w, http.StatusNotFound, "only leases are served")
		return
	}
	name = strings.TrimPrefix(name, "/")
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.indexLocked(namespace, name)
	switch {
	case r.Method == http.MethodGet && name == "":
		key, value, selected := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
		response := list{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}}
		for _, o := range h.objects {
			if o.Metadata.Namespace == namespace && (!selected || o.Metadata.Labels[key] == value) {
				response.Items = append(response.Items, o)
			}
		}
		response.ResourceVersion = strconv.Itoa(h.version)
		_ = json.NewEncoder(w).Encode(response)
	case r.Method == http.MethodPost && name == "", r.Method == http.MethodPut:
		var o object
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || r.Method == http.MethodPut && o.Metadata.Name != name {
			writeError(w, http.StatusBadRequest, "invalid Lease")
			return
		}
		if r.Method == http.MethodPost {
			at, o.Metadata.UID = h.indexLocked(namespace, o.Metadata.Name), "" // the server sets it
		}
		switch {
		case r.Method == http.MethodPost && at >= 0:
			writeError(w, http.StatusConflict, "already exists")
			return
		case !h.preconditionsHoldLocked(at, o.Metadata.UID, o.Metadata.ResourceVersion):
			writeError(w, http.StatusConflict, "the object has been modified")
			return
		case at < 0:
			at = len(h.objects)
			h.objects = append(h.objects, o)
			o.Metadata.UID = types.UID("uid-" + strconv.Itoa(h.version))
		default:
			o.Metadata.UID = h.objects[at].Metadata.UID
		}
		h.version++
		o.Metadata.Namespace, o.Metadata.ResourceVersion = namespace, strconv.Itoa(h.version)
		h.objects[at] = o
		_ = json.NewEncoder(w).Encode(o)
	case r.Method == http.MethodDelete && at >= 0:
		var options metav1.DeleteOptions
		_ = json.NewDecoder(r.Body).Decode(&options) // they are optional
		uid, version := h.objects[at].Metadata.UID, h.objects[at].Metadata.ResourceVersion
		if p := options.Preconditions; p != nil {
			uid, version = ptr.Deref(p.UID, uid), ptr.Deref(p.ResourceVersion, version)
		}
		if !h.preconditionsHoldLocked(at, uid, version) {
			writeError(w, http.StatusConflict, "the object has been modified")
			return
		}
		h.version++
		h.objects = slices.Delete(h.objects, at, at+1)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusSuccess})
	default:
		writeError(w, http.StatusNotFound, "not found")
	}
}

func (h *Handler) indexLocked(namespace, name string) int {
	return slices.IndexFunc(h.objects, func(o object) bool { return o.Metadata.Namespace == namespace && o.Metadata.Name == name })
}

// preconditionsHoldLocked reports whether the preconditions hold for the object at an index; a negative one is that of
// a missing object.
func (h *Handler) preconditionsHoldLocked(at int, uid types.UID, version string) bool {
	if at < 0 {
		return uid == ""
	}
	stored := h.objects[at].Metadata
	return (uid == "" || uid == stored.UID) && version == stored.ResourceVersion
}

func writeError(w http.ResponseWriter, code int32, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Message: message,
	})
}
