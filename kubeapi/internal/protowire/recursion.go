package protowire

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// recursiveFields are the fields through which a message type contains itself. Generated code
// recurses for each level, which takes five bytes, and a stack of 1 GB ends the process. A
// malformed map entry also makes it read beyond the entry, which doubles the work with each level.
type recursiveFields struct {
	messages map[int32]*recursiveFields
	// mapEntries are maps whose values are messages.
	mapEntries map[int32]*recursiveFields
}

// recursiveFieldsCache has nil for a type that cannot contain itself.
var recursiveFieldsCache sync.Map // reflect.Type: *recursiveFields

// recursiveFieldsOf derives a type's recursive fields from the struct tags of generated code. It
// returns nil if the type cannot contain itself.
func recursiveFieldsOf(pointer reflect.Type) *recursiveFields {
	if known, ok := recursiveFieldsCache.Load(pointer); ok {
		return known.(*recursiveFields)
	}
	r := recursiveFieldsByType{}.of(pointer)
	recursiveFieldsCache.Store(pointer, r)
	return r
}

// recursiveFieldsByType has the types visited so far.
type recursiveFieldsByType map[reflect.Type]*recursiveFields

// of leaves out types without nested messages, so that only the recursive paths remain.
func (known recursiveFieldsByType) of(t reflect.Type) *recursiveFields {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if r, ok := known[t]; ok {
		return r
	}
	r := &recursiveFields{
		messages:   map[int32]*recursiveFields{},
		mapEntries: map[int32]*recursiveFields{},
	}
	known[t] = r
	for i := range t.NumField() {
		field := t.Field(i)
		number, encoding, ok := fieldTag(field)
		if !ok || encoding != "bytes" {
			continue
		}
		into := r.messages
		fieldType := field.Type
		if fieldType.Kind() == reflect.Map {
			into = r.mapEntries
			fieldType = fieldType.Elem()
		}
		if inner := known.of(fieldType); inner != nil {
			into[number] = inner
		}
	}
	if len(r.messages)+len(r.mapEntries) == 0 {
		known[t] = nil // no other type can have used it
		return nil
	}
	return r
}

// fieldTag returns the number and the encoding in a field's tag, for example
// "bytes,3,rep,name=properties".
func fieldTag(field reflect.StructField) (number int32, encoding string, ok bool) {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0, "", false
	}
	parsed, err := strconv.ParseInt(parts[1], 10, 32)
	return int32(parsed), parts[0], err == nil
}

// checkNesting returns an error if a message is nested deeper than limit or a field exceeds its
// container. level is the message's own.
func (r *recursiveFields) checkNesting(message []byte, level, limit int) error {
	if r == nil {
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
		if inner := r.messages[t.number]; inner != nil {
			err = inner.checkNesting(value, level+1, limit)
		} else if inner := r.mapEntries[t.number]; inner != nil {
			err = inner.checkEntryNesting(value, level+1, limit)
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

// checkEntryNesting checks a map entry whose value has the recursive fields r.
func (r *recursiveFields) checkEntryNesting(entry []byte, level, limit int) error {
	for rest := entry; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return err
		}
		rest = after
		if t.number > entryValue {
			continue
		}
		if err := t.requireBytes("an entry of a map"); err != nil {
			return err
		}
		if t.number == entryValue {
			if err := r.checkNesting(value, level, limit); err != nil {
				return err
			}
		}
	}
	return nil
}
