// Package cborwire reads lists in the media type application/cbor and watches in
// application/cbor-seq. API servers serve them if their alpha feature
// CBORServingAndStorage is on.
//
// # The form of a body
//
// It is the JSON form, written as RFC 8949 says: a list is a map of apiVersion, kind,
// metadata and an array of items, a watch is one map of type and object after the other
// with nothing between (RFC 8742). Everything that apimachinery writes begins with the
// tag of self-described CBOR, the bytes d9 d9 f7, and so does each object in a watch,
// because it was written on its own. Strings, the names of fields included, are
// byte strings, which spares the reader to check them; text strings mean the same.
// See apimachinery's package runtime/serializer/cbor.
//
// The fields of a map come in any order. That of apimachinery's list is kind, items,
// metadata, apiVersion: what a list says of itself is complete only at its end.
//
// # Cutting
//
// The end of a value is found by its heads alone (RFC 8949 section 3): each says what
// follows and how much of it. A stack holds how many values the arrays and maps
// that are open still lack. Values of indefinite length are accepted as well: apimachinery
// does not write them but reads them. Whether what lies between means anything is for
// the decoder to say, when a value is cut out and can spoil no other. There is one
// exception: nesting of more than 10,000 levels, which nothing in an API server can
// have, ends the whole body, so that the stack stays small.
//
// # Decoding
//
// It is apimachinery's own decoder that makes objects of the values. So what an encoding
// on the wire does to raw JSON inside of Go types (runtime.RawExtension, FieldsV1) is
// reversed, duplicate fields are an error, and numbers are int64 and float64.
//
// Where only some fields are wanted (Cut), a smaller map is made of those first.
//
// Before an object, a list, its metadata or its items, no tag is accepted but that of
// self-description: there are tags that say how to read every string behind them, which
// would be lost on a value that is cut out. A second kind, apiVersion, metadata or items in a
// list, and a second type or object in a frame, is malformed.
package cborwire
