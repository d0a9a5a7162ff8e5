// Package kubeapi is a source for a Kubernetes-style API: it lists and watches one resource over plain net/http, of a
// kube-apiserver, an aggregated API server or kubectl proxy. It needs no client-go.
//
// # Use
//
// Name the API and the resource, and pass the result to an informer or a reflector:
//
//	source, err := kubeapi.New(kubeapi.Options{
//		BaseURL:  "http://127.0.0.1:8001",
//		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
//	})
//
// In a pod, [InCluster] returns the options for the cluster's own API. Elsewhere [Options].HTTPClient has TLS, proxies and
// client certificates, and Options.Authorize the credentials: [ClientWithCA] and [BearerTokenFile] make both of files. Users
// of client-go keep their rest.Config through the module adapters/clientgo.
//
// # Objects
//
// Options.ObjectType is an example: nil for *unstructured.Unstructured, *metav1.PartialObjectMetadata for metadata
// alone, or a pointer to a Go type such as &corev1.Pod{}. Go types with an Unmarshal method are requested in protobuf, all
// others in JSON; Options.Encodings changes that. Whole numbers in unstructured objects are int64, all others float64.
//
// # Memory
//
// A list's body is decoded item by item as it arrives, and nothing is read ahead: a slow consumer slows the server. No
// object refers to the memory of another. A reflector of this library reads item by item (ListItems); ListWithContext
// collects the whole list. An idle watch takes a few kilobytes.
//
// # Bad objects
//
// An item or event that cannot be decoded arrives as an [UndecodableObject] with the metadata that could be read; the
// others are not affected. A reflector of this library quarantines it. An event may have been damaged in transit: it first
// ends the watch (CauseBadFrame), and is passed on if another watch brings the same bytes.
//
// # Fields by name
//
// Options.Fields names the fields that a program needs. All others are dropped before decoding, in lists and watches, in
// any encoding: two fields of a pod cost a tenth of the whole. Always kept are apiVersion and kind, and of the metadata
// all but annotations and managedFields, so selectors, owners and finalizers work. Consequences:
//
//   - A field that is not named reads as its zero value, without an error. Name all that handlers, index functions,
//     transforms and readers use.
//   - Changes of other fields still arrive as events, since the object's version changes.
//   - Such an object must not be written back: it would empty the other fields.
//
// To prevent such a write each object has the annotation [ProjectionMark], which API servers refuse: Create, Update and
// Apply fail with errors.IsInvalid. These writes are not refused:
//
//   - UpdateStatus where the server reads only the status of the request, as for custom resources: name "status" if you
//     write it so.
//   - A patch computed from two such objects. It is right for fields; for lists, name the list as a whole.
//   - Parts copied into other objects, code that replaces all annotations, and servers that do not check them.
//
// To write, get the object from the API (with controller-runtime, by the manager's GetAPIReader) and update that, or apply
// or patch only what changes.
//
// # Managed fields
//
// metadata.managedFields is dropped, by the server if it can and else after decoding, unless Options.KeepManagedFields
// says otherwise. Only extract-and-apply code needs it; updates without it leave it as it is.
//
// # Errors
//
//   - The server refused: the cause is a *errors.StatusError, so errors.IsForbidden, errors.IsResourceExpired and
//     errors.SuggestsClientDelay (Retry-After) work. Without a Status it is made from the HTTP code.
//   - The connection failed or stalled: net.IsConnectionRefused of apimachinery, [ErrStalled].
//   - The answer is no list or watch (a login page, a Table, broken JSON), or exceeds the [Limits]: one of the Err values.
//
// Each is wrapped in a *url.Error with the call and the URL, without query and credentials. An open watch that ends early
// sends an Error event: the server's Status or, if the stream broke, one with the code 0 and [CauseStreamCut] or
// [CauseBadFrame]:
//
//	err := errors.FromObject(event.Object)
//	if errors.HasStatusCause(err, kubeapi.CauseStreamCut) { ... }
//
// A watch that the server ends normally, or whose context ends, closes its channel without an Error event.
//
// # Contexts and goroutines
//
// The context of a call also governs the stream of a watch: when it ends, the request is cancelled and the channel closes.
// Lists run on the caller's goroutine. A watch has one goroutine, for which Stop waits, and no time limit of its own: use
// timeoutSeconds and a context, as a reflector does.
//
// # Hostile servers
//
// A server can send objects, within Options.Limits, for as long as they are read. It cannot make this package hold more
// than one item, or read a refusal without end. Its texts become one short line in an error, without control characters;
// values of the request's headers and query are replaced by dots where it repeats them, also those set by Options.Authorize,
// a transport or a cookie jar. Redirects are followed only within the origin of Options.BaseURL. The number of objects is
// bounded only by Limits.Objects.
//
// # Wrapping a source
//
// A type that embeds a *ListerWatcher and changes its lists overrides ListItems as well as ListWithContext.
package kubeapi
