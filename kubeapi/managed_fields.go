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

// dropManagedFields is the media type parameter that asks a server to omit metadata.managedFields,
// see https://kep.k8s.io/5958. Servers that do not know it ignore it.
const dropManagedFields = ";drop=metadata.managedFields"

// managedFields tracks whether the server or the client drops metadata.managedFields, judging by
// the objects: no response header shows it.
type managedFields struct {
	kept bool
	// parameterRefused is true once a server has refused a request with the parameter (406).
	parameterRefused atomic.Bool
	// beforeFirst is true between the headers of a response and its first object.
	beforeFirst atomic.Bool
	// observed is droppedByServer or droppedByClient, nil until an object has arrived.
	observed atomic.Pointer[string]
}

// Values of "managedFields" in SourceStatus.
var (
	kept            = "kept"
	dropRequested   = "requested to be dropped"
	droppedByServer = "dropped by the server"
	droppedByClient = "dropped by the client, the server sends them"
	dropRefused     = "dropped by the client, the server refuses the parameter"
)

// sourceStatusesOf returns the results of SourceStatus, by that value: a status is read often, and
// a map costs allocations.
func sourceStatusesOf(c collection) map[string]map[string]string {
	statuses := map[string]map[string]string{}
	states := []string{kept, dropRequested, droppedByServer, droppedByClient, dropRefused}
	for _, state := range states {
		statuses[state] = map[string]string{"address": c.String(), "managedFields": state}
	}
	return statuses
}

// SourceStatus returns details for a reflector's Status, which must not be changed. "address" is
// the URL that is listed and watched, without its query. "managedFields" is "kept", "requested to
// be dropped" (until an object has arrived), "dropped by the server" (the last list or watch sent
// none), or "dropped by the client" with the reason. It may be called concurrently.
func (lw *ListerWatcher) SourceStatus() map[string]string {
	state := dropRequested
	switch observed := lw.managedFields.observed.Load(); {
	case lw.managedFields.kept:
		state = kept
	case lw.managedFields.parameterRefused.Load():
		state = dropRefused
	case observed != nil:
		state = *observed
	}
	return lw.sourceStatuses[state]
}

// LastRead is when bytes of a response last arrived, or zero: the connection was alive then. It
// does not show that the store is current, since the events in those bytes may not be applied yet.
// It may be called concurrently.
func (lw *ListerWatcher) LastRead() time.Time {
	at := lw.lastRead.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}

// requestsDrop reports whether requests have the parameter.
func (m *managedFields) requestsDrop() bool { return !m.kept && !m.parameterRefused.Load() }

// recordRefusal records a 406 and reports whether the request should be repeated without the
// parameter.
func (m *managedFields) recordRefusal() bool {
	return m.requestsDrop() && m.parameterRefused.CompareAndSwap(false, true)
}

// responseBegun records that objects follow, possibly from another server than before.
func (m *managedFields) responseBegun() { m.beforeFirst.Store(true) }

// dropManagedFields removes them from an object decoded from raw, and records whether the server
// had dropped them.
func (lw *ListerWatcher) dropManagedFields(
	encoding wire.Encoding, raw []byte, object runtime.Object,
) {
	m := &lw.managedFields
	if m.kept {
		return
	}
	first := m.beforeFirst.Swap(false)
	switch {
	case lw.target.projection == nil && removeManagedFields(object):
		m.observed.Store(&droppedByClient)
	case !first:
	case lw.target.projection != nil && hasManagedFields(encoding, raw, lw.limits.wire()):
		m.observed.Store(&droppedByClient)
	default:
		m.observed.Store(&droppedByServer)
	}
}

// removeManagedFields reports whether the object had any.
func removeManagedFields(object runtime.Object) bool {
	if u, ok := object.(*unstructured.Unstructured); ok {
		metadata, _ := u.Object["metadata"].(map[string]any)
		_, has := metadata["managedFields"]
		delete(metadata, "managedFields")
		return has
	}
	accessor, err := meta.Accessor(object)
	if err != nil || accessor.GetManagedFields() == nil {
		return false
	}
	accessor.SetManagedFields(nil)
	return true
}

// hasManagedFields looks for them in an object's bytes, since a projection drops them before
// decoding.
func hasManagedFields(encoding wire.Encoding, raw []byte, limits wire.Limits) bool {
	var object metav1.PartialObjectMetadata
	return encoding.Into(raw, limits, &object) == nil && len(object.ManagedFields) > 0
}
