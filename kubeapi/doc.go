// Package kubeapi is a source for a mirror: it lists and watches one resource of
// any API that speaks the Kubernetes list/watch protocol in JSON, over plain
// net/http. A kube-apiserver is such an API, an aggregated API server is, and so is
// whatever `kubectl proxy` passes on.
//
// # Use
//
// Say where the API is and which resource is wanted, and hand the result to a
// reflector or an informer as its ListerWatcher:
//
//	source, err := kubeapi.New(kubeapi.Options{
//		BaseURL:  "http://127.0.0.1:8001",
//		Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
//	})
//
// TLS, proxies and connection pools are those of Options.HTTPClient; credentials
// are put on each request by Options.Authorize. ClientWithCA and BearerTokenFile
// make both for the most common case, a CA file and a token file.
//
// # What a call answers
//
// List answers one *unstructured.UnstructuredList: one page, if a limit was asked
// for and the server honours it. Following continue tokens is the caller's work.
// Watch answers as soon as the server has sent its response headers; what the
// server then sends arrives on ResultChan, unbuffered, so that a slow consumer slows
// the server instead of filling memory here.
//
// Objects are *unstructured.Unstructured. Whole numbers are int64, all others
// float64, as everywhere in apimachinery. The items of a list, in which API servers
// leave out apiVersion and kind, get both from their list. The body of a list is
// decoded item by item as it arrives and is never held as a whole; no object refers
// to the memory of another. (That holds for an item taken out with
// meta.EachListItemWithAlloc or by its Object field. A pointer to an element of
// UnstructuredList.Items keeps the slice alive, and with it all other items.)
//
// # Errors
//
// There are three kinds, and they can be told apart without reading text:
//
//   - The server refused. The error is a *errors.StatusError of apimachinery, so that
//     errors.IsForbidden, errors.IsResourceExpired and the like work. It is made from
//     the Status the server sent or, where there is none, from the HTTP code. A
//     Retry-After header is in it: see errors.SuggestsClientDelay.
//   - The server could not be reached, or the connection failed. The error is a
//     *url.Error around the cause; net.IsConnectionRefused of apimachinery works.
//   - The answer is not what a list or a watch answers: a login page, a single
//     object, a Table, broken JSON. The error is a *url.Error around one of the Err
//     values of this package.
//
// The texts name the URL without query and without credentials. Those of a Status, which
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
// the request is cancelled and the channel closes. List runs on its caller's
// goroutine. A watch has one goroutine; Stop cancels the request and waits until
// that goroutine is gone. There are no timeouts over a whole call, because a watch
// is meant to stay open: bound a list with a context, a watch with its timeoutSeconds
// and a context that ends somewhat later.
//
// # What a hostile server can do
//
// A single object, in a list or a watch frame, may have 16 MiB of JSON; an error body
// is read to 64 KiB and for 10 seconds, then the HTTP code has to do. Redirects are
// followed only within scheme, host and port of Options.BaseURL, so that credentials
// reach nobody else. A list as a whole is not limited, except by the limit the caller
// asks for and the server honours: its objects are what the mirror is there to hold.
//
// # What is not here
//
// Typed objects and protobuf: everything is JSON and unstructured. One object that
// cannot be decoded fails the list, or ends the watch, in which it came. Client
// certificates need no support here (they are part of the *http.Client), kubeconfig
// files and login plugins have none.
package kubeapi
