package protowire

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// shape has the fields of a message that lead back to its type. Generated code calls itself for each level, which five bytes
// make, and a stack of 1 GB ends the process; in a map's entry it may also read beyond the end, which doubles the work with
// each level.
type shape struct {
	messages map[int32]*shape
	// entries are those of maps whose values are messages.
	entries map[int32]*shape
}

// shapes has the shape of each type that was asked for, nil if it cannot contain
// itself. There are as many as the program decodes types.
var shapes sync.Map // reflect.Type: *shape

// shapeOf returns nil for a type that cannot contain itself. It believes the struct
// tags by which the code was generated.
func shapeOf(pointer reflect.Type) *shape {
	if known, ok := shapes.Load(pointer); ok {
		return known.(*shape)
	}
	s := shapesByType{}.of(pointer)
	shapes.Store(pointer, s)
	return s
}

// shapesByType has a shape for each type that has been met on the way.
type shapesByType map[reflect.Type]*shape

// of leaves out what has no message in it that matters, so that nothing is left of a
// type but the ways that lead back to it.
func (known shapesByType) of(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if s, ok := known[t]; ok {
		return s
	}
	s := &shape{messages: map[int32]*shape{}, entries: map[int32]*shape{}}
	known[t] = s
	for i := range t.NumField() {
		field := t.Field(i)
		// Such as "bytes,3,rep,name=properties".
		parts := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(parts) < 2 || parts[0] != "bytes" {
			continue
		}
		number, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			continue
		}
		into, of := s.messages, field.Type
		if of.Kind() == reflect.Map {
			into, of = s.entries, of.Elem()
		}
		if inner := known.of(of); inner != nil {
			into[int32(number)] = inner
		}
	}
	if len(s.messages)+len(s.entries) == 0 {
		known[t] = nil // which nobody can have met as anything else
		return nil
	}
	return s
}

// check returns an error if a message, on a level of its own, is nested deeper than the
// limit or has a field that reaches out of it.
func (s *shape) check(message []byte, level, limit int) error {
	if s == nil {
		return nil
	}
	if level > limit {
		return &wire.LimitError{What: wire.LimitNesting, Limit: limit}
	}
	for rest := message; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return err
		}
		rest = after
		if inner := s.messages[t.number]; inner != nil {
			err = inner.check(value, level+1, limit)
		} else if inner := s.entries[t.number]; inner != nil {
			err = inner.checkEntry(value, level+1, limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The fields of a map's entry.
const (
	entryKey   = 1
	entryValue = 2
)

// checkEntry does it for the entry of a map whose values are of the shape.
func (s *shape) checkEntry(entry []byte, level, limit int) error {
	for rest := entry; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return err
		}
		rest = after
		if t.number > entryValue {
			continue
		}
		if err := t.want("an entry of a map"); err != nil {
			return err
		}
		if t.number == entryValue {
			if err := s.check(value, level, limit); err != nil {
				return err
			}
		}
	}
	return nil
}
