// Package projection translates the paths of Options.Fields into wire.Fields, with which decoders
// keep the named fields and drop all others.
//
// # Paths
//
// A path is a sequence of JSON field names separated by dots, such as spec.containers.image. It
// includes everything below. It descends into each element of a list, and into maps by their keys,
// as in metadata.annotations[example.com/owner]. Only keys with a dot need brackets.
//
// # Go types
//
// Paths into a Go type are checked against its struct tags, as decoders use them. In JSON, fields
// of an embedded struct belong to the outer object; in protobuf, they are a message of their own. A
// type that decodes itself from JSON (a quantity, a time) is kept or dropped as a whole, since only
// the type knows its content.
package projection
