// Package kubeapi is a source for a mirror: it lists and watches one resource of
// any API that speaks the Kubernetes list/watch protocol, over plain net/http. A
// kube-apiserver is such an API, an aggregated API server is, and so is whatever
// `kubectl proxy` passes on. It needs no client-go.
//
// # Use
//
// Say where the API is and which resource is wanted, and hand the result to a
// reflector or a controller as its ListerWatcher:
//
//	source, err := kubeapi.New(kubeapi.Options{
//		BaseURL:  "http://127.0.0.1:8001",
//		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
//	})
//
// In a pod, InCluster gives the options that reach the cluster's own API. Elsewhere
// TLS, proxies, client certificates and connection pools are those of
// Options.HTTPClient, and credentials are put on each request by Options.Authorize;
// ClientWithCA and BearerTokenFile make both for a CA file and a token file, TransportWithCA
// adds the CA file to a transport that has client certificates or a proxy. Users of
// client-go keep its rest.Config, with everything that can log in from there, through
// the module adapters/clientgo.
//
// # What objects are decoded into
//
// Options.ObjectType says it, by an example: nothing for *unstructured.Unstructured,
// *metav1.PartialObjectMetadata for metadata alone, or a pointer to any Go type with
// object metadata, such as &corev1.Pod{}. Go types that have an Unmarshal method are
// asked for in protobuf, everything else in JSON; Options.Encodings says otherwise, and
// can ask for CBOR. Whole numbers in unstructured objects are int64, all others float64,
// as everywhere in apimachinery.
//
// # How much is held
//
// A list's body is never held as a whole. It is cut into items as it arrives, in a
// buffer that the next item reuses; each is decoded once and handed on, and while
// nobody takes the next, nothing is read: a slow consumer slows the server instead of
// filling memory here. No object refers to the memory of another, or to the buffer. A
// reflector of this library takes items so (ListItems); ListWithContext collects them
// first. Watch frames are treated alike. An open watch that is idle holds a few
// kilobytes.
//
// # Bad objects
//
// An item or an event whose bytes cannot be decoded arrives as an *UndecodableObject: its
// namespace, name and version, where these can be read, and the error. The others are
// not affected. A reflector of this library reports it, keeps the state it had of that
// object, and continues.
//
// An event may have been damaged on its way. It ends the watch (CauseBadFrame), and arrives as
// an *UndecodableObject if another watch brings the same bytes. Where one does, others that are
// well-formed are not asked for again for an hour.
//
// # Fields by name
//
// Options.Fields names the fields that are wanted. All others are dropped from an object's
// bytes before these are decoded, in any of the encodings, from lists and from watches:
// what nobody reads costs neither the time to decode it nor memory. Two fields of a pod
// take a tenth of what the whole one does.
//
// What is lost:
//
//   - A field that is not named is empty, and looks like one that was empty.
//     A caller that reads it gets the zero value, without an error. Name all that handlers,
//     index functions, transforms and readers use.
//   - Changes of fields that are not named still come as events, because the version of the
//     object changes with them.
//   - Faults inside of such a field are not found.
//   - Such an object cannot be written back: it would empty what is not named.
//
// Always kept are apiVersion and kind, and of the metadata all but annotations and
// managedFields. So selectors, owners, finalizers and deletion work as ever, and a patch of
// labels, finalizers or owners may be computed from such an object. Bookmarks are not cut.
//
// Against the last of these losses each object carries a mark, ProjectionMark, which
// ProjectedFields reads. It is an annotation that no API server takes: Create, Update and
// Apply of an object that has it fail with errors.IsInvalid, and nothing is written. That
// rests on the server's checks of metadata, and does not help where these do not see it:
//
//   - UpdateStatus of custom resources, and of the built-in types whose servers take nothing
//     but the status from such a request. Name "status" if you write it so.
//   - A patch, as it is the difference of two objects that both have the mark. What it says
//     of fields is right. Of a list it says either how elements changed, by their keys
//     (strategic merge), or what the whole list is to be (JSON merge patch, which is what
//     custom resources have). Then name the list as a whole, its elements are cut otherwise.
//   - A part of such an object that is copied into another one: a spec, a template.
//   - Code that replaces all annotations, and servers that do not check them.
//
// So to write: get the object from the API (with controller-runtime, by the manager's
// GetAPIReader) and update that, or apply or patch what is to be changed and nothing else.
//
// # Errors
//
// There are three kinds, and they can be distinguished without reading text:
//
//   - The server refused. The cause is a *errors.StatusError of apimachinery, so that
//     errors.IsForbidden, errors.IsResourceExpired and the like work. It is made from
//     the Status the server sent or, where there is none, from the HTTP code. A
//     Retry-After header is in it: see errors.SuggestsClientDelay.
//   - The server could not be reached, or the connection failed or fell silent;
//     net.IsConnectionRefused of apimachinery works.
//   - The answer is not what a list or a watch answers: a login page, a single
//     object, a Table, broken JSON, something larger than the Limits. The cause is one of
//     the Err values of this package.
//
// Each comes in a *url.Error, whose text names the call and the URL, without query and
// without credentials. Those of a Status, which
// anybody may have written who answers in place of the API, are passed on without line
// breaks and control characters, each to 4,096 characters. What ends an open
// watch early comes as a last event of type Error. Either the server sent it, and its
// Status is that of the server; or the stream broke, and the Status has an empty
// reason, the code 0 and one of the causes CauseStreamCut and CauseBadFrame:
//
//	err := errors.FromObject(event.Object)
//	if errors.HasStatusCause(err, kubeapi.CauseStreamCut) { ... }
//
// A watch that the server ends in good order, and one whose context ends, closes
// its channel without an Error event.
//
// # Contexts and goroutines
//
// The context of a call governs all of it, for a watch also the stream: when it ends,
// the request is cancelled and the channel closes. Lists run on their caller's
// goroutine, and fail when nothing has come for Options.StallTimeout. A watch has one
// goroutine; Stop cancels the request and waits until that goroutine has ended. A watch
// has no time limit, because it is meant to stay open: bound it with its timeoutSeconds
// and a context that ends somewhat later, as a reflector does.
//
// # What a hostile server can do
//
// It can send objects, within Options.Limits, for as long as somebody takes them; it
// cannot make this package hold more than one item (or as many bytes of several, which do
// not say what they are before their list does), or go on for ever beside them, or have
// more of a refusal read than a limit says, or for longer than 10 seconds. What it says
// becomes one short line in an error. Where it repeats what it was sent, dots stand for the
// values of headers and query, from any of these: Options.Authorize, a
// transport or a cookie jar of Options.HTTPClient. Values that only say how the request is
// written, versions and the name of an impersonated user are left, and so are other headers'
// of fewer than 6 characters if their name does not say that they are credentials.
// Redirects are followed only within scheme,
// host and port of Options.BaseURL, so that credentials reach nobody else. How many
// objects a list may have is not limited unless Limits.Objects says so: they are what the
// mirror is there to hold.
//
// # Wrapping a source
//
// A type that embeds a *ListerWatcher to see or change its calls overrides ListItems as well
// as ListWithContext: a reflector of this library calls the former, others the latter.
package kubeapi
