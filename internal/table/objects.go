package table

import (
	"reflect"
	"unsafe"
)

// Objects of one type, as most tables have: a chunk whose cells are all of it is gone through
// without an interface being put together and taken apart for each.

// ObjectsOf calls f with every object of a snapshot that is a T, in no order, as long as it
// returns true.
func ObjectsOf[T any](s *Snapshot, f func(T) bool) {
	its := typeOf[T]()
	s.chunks(func(c *chunk, typ unsafe.Pointer) bool {
		if typ == nil || typ != its {
			return c.each(s, func(obj any) bool {
				is, ok := obj.(T)
				return !ok || f(is)
			})
		}
		for at := range c.cells {
			if value := c.cells[at].value; value != nil && !f(*(*T)(unsafe.Pointer(&value))) {
				return false
			}
		}
		return true
	})
}

// AppendObjectsOf appends all objects of a snapshot that are Ts to a list, in no order.
func AppendObjectsOf[T any](list []T, s *Snapshot) []T {
	its := typeOf[T]()
	s.chunks(func(c *chunk, typ unsafe.Pointer) bool {
		if typ == nil || typ != its {
			return c.each(s, func(obj any) bool {
				if is, ok := obj.(T); ok {
					list = append(list, is)
				}
				return true
			})
		}
		more := list // of the loop alone: it has it in registers
		for at := range c.cells {
			if value := c.cells[at].value; value != nil {
				more = append(more, *(*T)(unsafe.Pointer(&value)))
			}
		}
		list = more
		return true
	})
	return list
}

// HasOnly says whether all objects of a snapshot are certainly Ts: its table has never had others.
// It is false for an interface type.
func HasOnly[T any](s *Snapshot) bool {
	var none T
	its, types := apart(none).typ, *s.types.all.Load()
	switch {
	case s.types.boxes.Load(), its == nil, len(types) > int(firstType)+1:
		return false
	}
	return len(types) == int(firstType) || types[firstType] == its
}

// AppendObjects appends all objects to a list, in no order.
func (s *Snapshot) AppendObjects(list []any) []any {
	s.chunks(func(c *chunk, typ unsafe.Pointer) bool {
		if typ == nil {
			return c.each(s, func(obj any) bool {
				list = append(list, obj)
				return true
			})
		}
		more := list // as above
		for at := range c.cells {
			if value := c.cells[at].value; value != nil {
				more = append(more, together(typ, value))
			}
		}
		list = more
		return true
	})
	return list
}

// ObjectsHaving are the objects that have a value in an index, in no order, in a list of its
// own.
func (s *Snapshot) ObjectsHaving(index int, value string) []any {
	p, found := s.postings(index, value)
	if !found {
		return []any{}
	}
	list, types := make([]any, 0, p.len), *s.types.all.Load()
	for numbers := range p.runs {
		for _, number := range numbers {
			c := s.cell(number)
			if id := c.typ(); id != boxed {
				list = append(list, together(types[id], c.value))
			} else {
				list = append(list, s.types.load(id, c.value))
			}
		}
	}
	return list
}

// ObjectsOfHaving are those of them that are Ts.
func ObjectsOfHaving[T any](s *Snapshot, index int, value string) []T {
	p, found := s.postings(index, value)
	if !found {
		return []T{}
	}
	its, types := typeOf[T](), *s.types.all.Load()
	list := make([]T, 0, p.len)
	for numbers := range p.runs {
		for _, number := range numbers {
			c := s.cell(number)
			if id := c.typ(); its != nil && types[id] == its {
				list = append(list, *(*T)(unsafe.Pointer(&c.value)))
			} else if is, ok := s.types.load(id, c.value).(T); ok {
				list = append(list, is)
			}
		}
	}
	return list
}

// each calls f with the objects of a chunk, of whatever types they are.
func (c *chunk) each(s *Snapshot, f func(any) bool) bool {
	for at := range c.cells {
		if value := c.cells[at].value; value != nil && !f(s.types.load(c.cells[at].typ(), value)) {
			return false
		}
	}
	return true
}

// typeOf is what stands for T in a chunk of Ts, of which the word is the T itself; nil for a
// type that is no pointer.
func typeOf[T any]() unsafe.Pointer {
	if reflect.TypeFor[T]().Kind() != reflect.Pointer {
		return nil
	}
	var none T
	return apart(none).typ
}
