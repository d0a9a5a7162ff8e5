// Package kubeapi lists and watches one resource of a Kubernetes-style API over plain net/http: a
// kube-apiserver, an aggregated API server or kubectl proxy. It needs no client-go.
//
// # Use
//
// Name the API and the resource, and pass the source to an informer or a reflector:
//
//	source, err := kubeapi.New(kubeapi.Options{
//		BaseURL:  "http://127.0.0.1:8001",
//		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
//	})
//
// In a pod, [InCluster] returns the options for the cluster's own API. Elsewhere, set
// [Options].HTTPClient for TLS, proxies and client certificates, and Options.Authorize for
// credentials; [ClientWithCA] and [BearerTokenFile] read both from files. With a rest.Config of
// client-go, use the module adapters/clientgo instead.
//
// # Objects
//
// Options.ObjectType is an example of the wanted type: nil for *unstructured.Unstructured,
// *metav1.PartialObjectMetadata for metadata only, or a pointer to a Go type such as &corev1.Pod{}.
// Go types with an Unmarshal method are requested in protobuf, all others in JSON;
// Options.Encodings changes that. In unstructured objects, whole numbers are int64 and others
// float64.
//
// # Memory
//
// A list's body is decoded item by item as it arrives, and nothing is read ahead: a slow consumer
// slows the server. Objects do not share memory with each other. A reflector of this library reads
// item by item (ListItems); ListWithContext collects the whole list. An idle watch uses a few
// kilobytes.
//
// # Bad objects
//
// An item or event that cannot be decoded arrives as an [UndecodableObject] with the metadata that
// could be read; other objects are not affected. A reflector of this library quarantines it. An
// event may have been damaged in transit, so it first ends the watch (CauseBadFrame). If another
// watch brings the same bytes, it is passed on.
//
// # Fields by name
//
// Options.Fields names the fields that a program needs. All others are dropped before decoding, in
// lists and watches, in any encoding: two fields of a pod cost a tenth of the whole. Always kept
// are apiVersion, kind and the metadata without annotations and managedFields, so selectors, owners
// and finalizers work. Consequences:
//
//   - A field that is not named reads as its zero value, without an error. Name all that handlers,
//     index functions, transforms and readers use.
//   - Changes of other fields still arrive as events, since the object's version changes.
//   - Such an object must not be written back: it would empty the other fields.
//
// To prevent such a write, each object has the annotation [ProjectionMark]. API servers refuse it:
// Create, Update and Apply fail with errors.IsInvalid. These writes are not refused:
//
//   - UpdateStatus, if the server reads only the status of the request, as for custom resources.
//     Name "status" if you write it so.
//   - A patch computed from two such objects. It is correct for fields; for lists, name the whole
//     list.
//   - Parts copied into other objects, code that replaces all annotations, and servers that do not
//     check annotations.
//
// To write, get the object from the API (with controller-runtime, by the manager's GetAPIReader)
// and update that, or apply or patch only the changes.
//
// # Managed fields
//
// metadata.managedFields is dropped, by the server if it supports that and otherwise after
// decoding, unless Options.KeepManagedFields is set. Only extract-and-apply code needs it. An
// update without it leaves it unchanged.
//
// # Errors
//
//   - The server refused: the cause is a *errors.StatusError, so errors.IsForbidden,
//     errors.IsResourceExpired and errors.SuggestsClientDelay (Retry-After) work. If the body is
//     not a Status, one is made from the HTTP code.
//   - The connection failed or stalled: net.IsConnectionRefused of apimachinery, [ErrStalled].
//   - The response is not a list or watch (a login page, a Table, broken JSON), or exceeds the
//     [Limits]: one of the Err values.
//
// Each is wrapped in a *url.Error with the call and the URL, without query and credentials. An open
// watch that ends early sends an Error event: the server's Status or, if the stream broke, a Status
// with code 0 and [CauseStreamCut] or [CauseBadFrame]:
//
//	err := errors.FromObject(event.Object)
//	if errors.HasStatusCause(err, kubeapi.CauseStreamCut) { ... }
//
// A watch that the server ends normally, or whose context ends, closes its channel without an Error
// event.
//
// # Contexts and goroutines
//
// The context of a call also governs the stream of a watch: when it ends, the request is cancelled
// and the channel closes. Lists run on the caller's goroutine. A watch has one goroutine, and Stop
// waits for it. A watch has no time limit of its own: set timeoutSeconds and a context, as a
// reflector does.
//
// # Hostile servers
//
// A server can send objects, within Options.Limits, for as long as they are read. It cannot make
// this package hold more than one item, or read an endless error response. A server's text becomes
// one short line in an error, without control characters. If that text repeats values of the
// request's headers or query, they are replaced by dots, including those set by Options.Authorize,
// a transport or a cookie jar. Redirects are followed only within the origin of Options.BaseURL.
// The number of objects is unbounded unless Limits.Objects is set.
//
// # Wrapping a source
//
// A type that embeds a *ListerWatcher and changes its lists must override ListItems as well as
// ListWithContext.
package kubeapi
