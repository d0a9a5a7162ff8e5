// Package protowire reads lists and watches in the media type
// application/vnd.kubernetes.protobuf.
//
// # The form of a body
//
// What API servers call protobuf is protobuf in an envelope. A single object, a list
// and a Status are the four bytes "k8s\x00" and then a runtime.Unknown:
//
//	1 typeMeta         { 1 apiVersion, 2 kind }
//	2 raw              the message itself
//	3 contentEncoding  empty: other values have never been used
//	4 contentType      empty
//
// Of a list, raw has by a convention of all Kubernetes APIs the list's metadata in
// field 1 and each item in a field 2 of its own, so an item can be cut out without
// knowing what it is. It has no envelope: its type follows from that of the list.
//
// A watch is a sequence of frames: four bytes of length, big-endian, and then a
// metav1.WatchEvent without envelope,
//
//	1 type
//	2 object { 1 raw }
//
// whose raw is an object with envelope, magic bytes and all. See apimachinery's
// packages runtime/serializer/protobuf and runtime/serializer/streaming.
//
// # Two forms of an object
//
// So the bytes of an object are a bare message if a List has cut them out, and in an
// envelope if a Watch has, or if they are a body. Into and Identify take both, and tell
// them apart by the magic bytes: as a message they would begin with a group, a relic
// that no Kubernetes type has. The type in an envelope is set on the object by Into; a
// bare object's type is left as it is.
//
// # Refusals
//
// Groups, numbers of more than ten bytes, lengths that reach out of what they are in,
// and a second raw in one envelope (items of the first have been handed out) are
// malformed. Unknown fields are skipped. A body that ends before its raw has come was
// cut off: API servers send one even for the emptiest of lists, and to take such a
// body for an empty list would mean to delete everything. The type of a list
// is looked at as soon as it comes, which is first, from API servers; if raw comes
// before it, items are handed out before anybody knows what they are.
//
// # Decoding
//
// Bytes alone do not tell a string from a message, so there is no unstructured form
// (wire.ErrNotSelfDescribing). A Go type decodes itself, by its generated Unmarshal
// method, which copies what it keeps. How deep it recurses is bounded by its types, except
// of those few that contain themselves, such as the schemas in a
// CustomResourceDefinition; for them alone the nesting is counted before they are
// decoded (see shape). A message is one level, an entry of a map is not.
//
// Where only some fields are wanted (Cut), a smaller message is made of those, and that is
// decoded: each field says how long it is, so that those that are not wanted are stepped
// over, whatever they hold.
package protowire
