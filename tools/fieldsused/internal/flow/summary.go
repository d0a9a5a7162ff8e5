package flow

import (
	"go/token"
	"go/types"
	"maps"
)

// origin is the part of an object, or of a parameter, that a value is derived from.
type origin struct {
	// root is the object's type. It is nil if the value is derived from a parameter.
	root *types.TypeName
	// param is the parameter's index if root is nil. Free variables follow the parameters.
	param int
	path  string
	// notObject is set once the value was found to be of a type that is no object's. It cannot be a
	// whole object then.
	notObject bool
}

// with returns the origin of a value in a function's caller, from that of a parameter in the
// function and that of its argument. ok is false if the argument cannot be that value.
func (o origin) with(argument origin) (joined origin, ok bool) {
	isWhole := argument.path == ""
	if o.notObject && isWhole && argument.root != nil && !isUnstructured(argument.root.Type()) {
		return argument, false
	}
	joined = argument.below(o.path)
	joined.notObject = argument.notObject || o.notObject && isWhole
	return joined, true
}

func (o origin) below(relative string) origin {
	o.path = join(o.path, relative)
	return o
}

// origins is a set.
type origins map[origin]struct{}

func originsOf(list ...origin) origins {
	set := origins{}
	for _, o := range list {
		set[o] = struct{}{}
	}
	return set
}

func (s origins) below(relative string) origins {
	if relative == "" || len(s) == 0 {
		return s
	}
	set := origins{}
	for o := range s {
		set[o.below(relative)] = struct{}{}
	}
	return set
}

// union returns a set with the elements of both. It may return one of them.
func (s origins) union(other origins) origins {
	switch {
	case len(other) == 0:
		return s
	case len(s) == 0:
		return other
	}
	set := maps.Clone(s)
	maps.Copy(set, other)
	return set
}

// limited returns a set of limited size.
func (s origins) limited() origins {
	if len(s) <= maxOrigins {
		return s
	}
	set := origins{}
	for o := range s {
		o.path = shortened(o.path)
		set[o] = struct{}{}
	}
	return set
}

// Kind says how an object or a part of it is used.
type Kind int

const (
	// Read: the value at the path, with everything below it.
	Read Kind = iota
	// Presence: whether there is a value, or how many elements it has.
	Presence
	// Compared: the whole object is compared with another one.
	Compared
	// Escaped: the value reaches code that is not analyzed.
	Escaped
)

// use is one use of an object or parameter.
type use struct {
	of   origin
	kind Kind
	site Site
	// how describes an escape.
	how string
}

// Site is a place in the analyzed program. Pos is valid only in the pass that found it.
type Site struct {
	Pos  token.Pos
	File string
	Line int
}

// summary is what callers have to know of a function.
type summary struct {
	uses map[use]struct{}
	// results are what each result is derived from.
	results []origins
	// inline is set for functions of other modules, whose uses are reported at the call.
	inline bool
}

func newSummary(signature *types.Signature) *summary {
	return &summary{
		uses:    map[use]struct{}{},
		results: make([]origins, signature.Results().Len()),
	}
}

// size grows with each change.
func (s *summary) size() int {
	size := len(s.uses)
	for _, result := range s.results {
		size += len(result)
	}
	return size
}

// String is the kind in a word.
func (k Kind) String() string {
	switch k {
	case Presence:
		return "presence"
	case Compared:
		return "compared"
	case Escaped:
		return "escaped"
	}
	return "read"
}
