package kubeapi

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// dropManagedFields is the parameter of a media type by which a server is asked to leave metadata.managedFields out, see
// https://kep.k8s.io/5958. Servers that do not know it ignore it.
const dropManagedFields = ";drop=metadata.managedFields"

// managedFields is what becomes of metadata.managedFields, as seen in the objects: no header of an answer says it.
type managedFields struct {
	kept bool
	// refused is true once a server has answered 406 to a request with the parameter.
	refused atomic.Bool
	// begun is true from the headers of an answer to its first object.
	begun atomic.Bool
	// by has who drops them, nil until an object has come.
	by atomic.Pointer[string]
}

// The values of SourceStatus for managedFields.
var (
	droppedByServer  = "dropped by the server"
	droppedByClient  = "dropped by the client, the server sends them"
	droppedAsRefused = "dropped by the client, the server refuses the parameter"
)

// SourceStatus says, under "managedFields", what becomes of metadata.managedFields: "kept"; "requested to be dropped", until
// an object has come; "dropped by the server", if the last list or watch sent none; or "dropped by the client", and why. A
// reflector has it in its Status. Under "lastRead" is when bytes of an answer last came, in RFC 3339: the connection was alive then. It does not show
// that the store is current, since the events that the bytes are of may be on their way.
func (lw *ListerWatcher) SourceStatus() map[string]string {
	state := "requested to be dropped"
	switch by := lw.managed.by.Load(); {
	case lw.managed.kept:
		state = "kept"
	case lw.managed.refused.Load():
		state = droppedAsRefused
	case by != nil:
		state = *by
	}
	status := map[string]string{"managedFields": state}
	if at := lw.lastRead.Load(); at > 0 {
		status["lastRead"] = time.Unix(0, at).UTC().Format(time.RFC3339Nano)
	}
	return status
}

// requested says whether a request has the parameter.
func (m *managedFields) requested() bool { return !m.kept && !m.refused.Load() }

// refuse notes that a request was not acceptable, and says whether one without the parameter may be.
func (m *managedFields) refuse() bool { return m.requested() && m.refused.CompareAndSwap(false, true) }

// answered notes that objects follow, of a server that may be another than before.
func (m *managedFields) answered() { m.begun.Store(true) }

// dropManagedFields removes them from an object that was decoded of these bytes, and notes whether the server had.
func (lw *ListerWatcher) dropManagedFields(encoding wire.Encoding, raw []byte, object runtime.Object) {
	m := &lw.managed
	if m.kept {
		return
	}
	first := m.begun.Swap(false)
	switch {
	case lw.target.projection == nil && removeManagedFields(object):
		m.by.Store(&droppedByClient)
	case !first:
	case lw.target.projection != nil && hasManagedFields(encoding, raw, lw.limits.wire()):
		m.by.Store(&droppedByClient)
	default:
		m.by.Store(&droppedByServer)
	}
}

// removeManagedFields says whether an object had some.
func removeManagedFields(object runtime.Object) bool {
	if generic, ok := object.(*unstructured.Unstructured); ok {
		metadata, _ := generic.Object["metadata"].(map[string]any)
		_, has := metadata["managedFields"]
		delete(metadata, "managedFields")
		return has
	}
	about, err := meta.Accessor(object)
	if err != nil || about.GetManagedFields() == nil {
		return false
	}
	about.SetManagedFields(nil)
	return true
}

// hasManagedFields looks for them in an object's bytes, of which a projection drops them unseen.
func hasManagedFields(encoding wire.Encoding, raw []byte, limits wire.Limits) bool {
	var about metav1.PartialObjectMetadata
	return encoding.Into(raw, limits, &about) == nil && len(about.ManagedFields) > 0
}
