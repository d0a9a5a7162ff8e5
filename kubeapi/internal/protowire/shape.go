package protowire

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// shape has the fields of a message through which its type contains itself. Generated code recurses for each level,
// which takes five bytes, and a stack of 1 GB ends the process. A malformed map entry also makes it read beyond the
// entry, which doubles the work with each level.
type shape struct {
	messages map[int32]*shape
	// entries are maps whose values are messages.
	entries map[int32]*shape
}

// shapes caches the shape of each decoded type, nil if the type cannot contain itself.
var shapes sync.Map // reflect.Type: *shape

// shapeOf derives a type's shape from the struct tags of generated code. It returns nil if the type cannot contain
// itself.
func shapeOf(pointer reflect.Type) *shape {
	if known, ok := shapes.Load(pointer); ok {
		return known.(*shape)
	}
	s := shapesByType{}.of(pointer)
	shapes.Store(pointer, s)
	return s
}

// shapesByType has the shapes of the types visited so far.
type shapesByType map[reflect.Type]*shape

// of leaves out types without nested messages, so that only the recursive paths remain.
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
		// The tag is, for example, "bytes,3,rep,name=properties".
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
		known[t] = nil // no other type can have used it
		return nil
	}
	return s
}

// check returns an error if a message is nested deeper than limit or a field exceeds its container. level is the
// message's own.
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

// Field numbers of a map entry.
const (
	entryKey   = 1
	entryValue = 2
)

// checkEntry checks a map entry whose value has the shape s.
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
