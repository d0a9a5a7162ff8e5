package protowire

import (
	"reflect"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// messageCost has the memory charged for each field of a message, by number. Two bytes can encode
// an empty message, which becomes a Go struct of a kilobyte.
type messageCost struct {
	fields map[int32]fieldCost
}

// fieldCost is the charge for each occurrence of a field.
type fieldCost struct {
	perOccurrence   int
	perByte         int          // for packed numbers
	message         *messageCost // of the field's message, or of a map's values
	isMap           bool         // the field is a map
	lengthDelimited bool         // its keys and values are length-delimited
}

// typeCost has the costs of a type, and the largest charge per byte in it.
type typeCost struct {
	*messageCost
	perByte int
}

var typeCostCache sync.Map // reflect.Type: typeCost

// typeCostOf derives the costs from the struct tags of generated code.
func typeCostOf(pointer reflect.Type) typeCost {
	if known, ok := typeCostCache.Load(pointer); ok {
		return known.(typeCost)
	}
	var t typeCost
	t.messageCost = messageCosts{}.of(pointer, &t.perByte)
	typeCostCache.Store(pointer, t)
	return t
}

// messageCosts has the costs of the types visited so far.
type messageCosts map[reflect.Type]*messageCost

func (known messageCosts) of(t reflect.Type, perByte *int) *messageCost {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if c, ok := known[t]; ok {
		return c
	}
	c := &messageCost{fields: map[int32]fieldCost{}}
	known[t] = c
	for i := range t.NumField() {
		field := t.Field(i)
		number, _, ok := fieldTag(field)
		if !ok {
			continue
		}
		cost := fieldCostOf(field.Type)
		inner := field.Type
		if inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		cost.message = known.of(inner, perByte)
		c.fields[number] = cost
		*perByte = max(*perByte, cost.perOccurrence/2, cost.perByte)
	}
	return c
}

// perField is the overhead of a string, time or similar value beyond its bytes.
const perField = 64

func fieldCostOf(t reflect.Type) fieldCost {
	size := func(t reflect.Type) int { return int(t.Size()) }
	switch t.Kind() {
	case reflect.Map:
		// Values are decoded one by one and copied; large ones are stored outside the map.
		slot := size(t.Key()) + min(size(t.Elem()), 128)
		return fieldCost{
			perOccurrence:   perField + 6*slot + 2*size(t.Elem()),
			isMap:           true,
			lengthDelimited: isLengthDelimited(t.Key()) && isLengthDelimited(t.Elem()),
		}
	case reflect.Pointer:
		return fieldCost{perOccurrence: perField + size(t.Elem())}
	case reflect.Slice:
		element := t.Elem()
		c := fieldCost{perOccurrence: perField + wire.Growing*size(element)}
		switch element.Kind() {
		case reflect.Uint8:
			c.perOccurrence = perField
		case reflect.Pointer:
			c.perOccurrence += size(element.Elem())
		case reflect.Struct, reflect.String, reflect.Slice:
		default:
			c.perByte = wire.Growing * size(element)
		}
		return c
	}
	return fieldCost{perOccurrence: perField}
}

func isLengthDelimited(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Struct, reflect.Pointer:
		return true
	}
	return false
}

// checkMemory charges for the fields of a large object. It refuses fields that exceed their map
// entry: generated code would read the bytes after each entry again.
func checkMemory(message []byte, object reflect.Type, limits wire.Limits) error {
	costs := typeCostOf(object)
	// An entry that exceeds itself has at least eight bytes.
	if limits.Spares(len(message), max(costs.perByte, perField/2)+len(message)/8) {
		return nil
	}
	charged := int64(0)
	if err := costs.charge(message, &charged, int64(limits.Memory)); err != nil {
		return err
	}
	return limits.CheckMemory(charged, len(message))
}

func (c *messageCost) charge(message []byte, charged *int64, limit int64) error {
	for rest := message; len(rest) > 0 && *charged <= limit; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return err
		}
		rest = after
		cost, known := c.fields[t.number]
		if !known {
			continue
		}
		*charged += int64(cost.perOccurrence) + int64(cost.perByte)*int64(len(value))
		switch {
		case cost.isMap:
			err = cost.chargeMapEntry(value, charged, limit)
		case cost.message != nil:
			err = cost.message.charge(value, charged, limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chargeMapEntry charges for a map entry.
func (c fieldCost) chargeMapEntry(entry []byte, charged *int64, limit int64) error {
	for rest := entry; len(rest) > 0 && *charged <= limit; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return err
		}
		rest = after
		if t.number > entryValue {
			continue
		}
		if err := t.requireBytes("an entry of a map"); err != nil && c.lengthDelimited {
			return err
		}
		*charged += perField
		if t.number == entryValue && c.message != nil {
			if err := c.message.charge(value, charged, limit); err != nil {
				return err
			}
		}
	}
	return nil
}
