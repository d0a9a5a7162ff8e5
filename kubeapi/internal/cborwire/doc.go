// Package cborwire reads lists in the media type application/cbor and watches in
// application/cbor-seq. API servers support them if their alpha feature CBORServingAndStorage is
// enabled.
//
// # Format
//
// It is the JSON form in CBOR (RFC 8949). A list is a map of apiVersion, kind, metadata and an
// array of items. A watch is a sequence (RFC 8742) of maps of type and object. Everything that
// apimachinery writes, each object in a watch included, begins with the tag of self-described CBOR,
// the bytes d9 d9 f7. Strings and field names are byte strings, which need no UTF-8 check; text
// strings mean the same. See apimachinery's package runtime/serializer/cbor.
//
// The fields of a map may be in any order. Apimachinery writes a list's fields as kind, items,
// metadata, apiVersion, so the header is complete only at the end.
//
// # Cutting
//
// The end of a value is found from its heads alone (RFC 8949 section 3): each says what follows and
// its length. A stack holds how many values are missing in each open array and map. Values of
// indefinite length are accepted too: apimachinery reads them but does not write them. The content
// of a value is checked by the decoder, after the value was cut out, so a bad value does not affect
// others. One exception: nesting of more than 10,000 levels, which no object of an API server has,
// fails the whole body, to bound the stack.
//
// # Decoding
//
// Apimachinery's decoder makes the objects. So it reverses the encoding of raw JSON in Go types
// (runtime.RawExtension, FieldsV1), refuses duplicate fields, and returns numbers as int64 and
// float64.
//
// If only some fields are wanted, Cut first makes a smaller map.
//
// No tag except self-description is accepted before an object, a list, its metadata or its items:
// some tags change how all strings in them are read, and would be lost when a value is cut out. A
// list with a second kind, apiVersion, metadata or items, and a frame with a second type or object,
// is malformed.
package cborwire
