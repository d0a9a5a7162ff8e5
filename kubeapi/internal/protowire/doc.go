// Package protowire reads lists and watches in the media type application/vnd.kubernetes.protobuf.
//
// # Format
//
// API servers wrap protobuf in an envelope. A single object, a list and a Status are the four bytes
// "k8s\x00" followed by a runtime.Unknown:
//
//	1 typeMeta         { 1 apiVersion, 2 kind }
//	2 raw              the message itself
//	3 contentEncoding  empty: other values have never been used
//	4 contentType      empty
//
// By a convention of all Kubernetes APIs, the raw of a list has the list's metadata in field 1 and
// each item in its own field 2, so an item can be cut out without knowing its type. An item has no
// envelope: its type follows from that of the list.
//
// A watch is a sequence of frames. Each is four bytes of length, big-endian, and a
// metav1.WatchEvent without envelope,
//
//	1 type
//	2 object { 1 raw }
//
// whose raw is an object in an envelope, magic bytes included. See apimachinery's packages
// runtime/serializer/protobuf and runtime/serializer/streaming.
//
// # Two forms of an object
//
// So an object from a List is a bare message, and one from a Watch or a whole body has an envelope.
// Into and Identify accept both. They recognize an envelope by the magic bytes: in a message these
// would begin a group, which no Kubernetes type has. Into sets the object's type from the envelope,
// and leaves it unchanged for a bare message.
//
// # Strictness
//
// These are malformed: groups, numbers of more than ten bytes, lengths that exceed their container,
// an object of a watch without envelope, and a second raw in an envelope (items of the first may
// have been returned). Unknown fields are skipped. A body that ends before raw was cut off: API servers send raw even for an empty list,
// and treating such a body as an empty list would delete everything. A list's type is checked as
// soon as it arrives. API servers send it first; if raw precedes it, items are returned before
// their type is known.
//
// # Decoding
//
// The bytes do not distinguish a string from a message, so there is no unstructured form
// (wire.ErrNotSelfDescribing). A Go type decodes itself with its generated Unmarshal method, which
// copies what it keeps. Its recursion is bounded by the type, except for the few types that contain
// themselves, such as the schemas in a CustomResourceDefinition. For those the nesting is checked
// before decoding (see recursiveFields). A message counts as one level, a map entry as none.
//
// If only some fields are wanted, Cut first makes a smaller message. Each field has its length, so
// unwanted fields are skipped whatever their content.
package protowire
