// Package projection makes of the paths by which a user names fields what decoders need to
// keep those and to drop all others: see wire.Fields.
//
// # Paths
//
// A path is names of fields as they stand in JSON, with dots between:
// spec.containers.image. It names all that is below. It walks through lists, into each
// element, and into maps, by their keys: metadata.annotations[example.com/owner], the
// brackets being needed only for keys in which there is a dot.
//
// # Go types
//
// Against a Go type paths are checked by its struct tags, the same that decoders go by: those
// of JSON, where fields of an embedded struct are fields of what it is embedded in, and
// those of protobuf, where they are a message of their own. A type that decodes itself from
// JSON (a quantity, a time) is kept as a whole or not at all: what is inside of it only that
// type knows.
package projection
