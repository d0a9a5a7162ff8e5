package conformance

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Checks of indexes.

// indexReader has the methods of an Indexer with the same types in every package. AddIndexers and GetIndexers have
// types of their package, and are called by reflection.
type indexReader interface {
	Index(indexName string, obj any) ([]any, error)
	IndexKeys(indexName, indexedValue string) ([]string, error)
	ListIndexFuncValues(indexName string) []string
	ByIndex(indexName, indexedValue string) ([]any, error)
}

type indexFunc = func(obj any) ([]string, error)

func lacksIndexes(t *storeTrial) string {
	const missing = "the store has not the methods of an Indexer"
	_, reads := t.store.(indexReader)
	add, get := t.method("AddIndexers"), t.method("GetIndexers")
	if lacksReading(t) != "" || !reads || !add.IsValid() || !get.IsValid() {
		return missing
	}
	if add.Type().NumIn() != 1 || get.Type().NumOut() != 1 || get.Type().Out(0) != add.Type().In(0) {
		return missing
	}
	of := add.Type().In(0)
	if of.Kind() != reflect.Map || !reflect.TypeFor[indexFunc]().ConvertibleTo(of.Elem()) {
		return missing
	}
	return ""
}

func lacksOwnIndexers(t *storeTrial) string {
	if t.config.SharedIndexers {
		return "SharedIndexers: the map that GetIndexers returns must not be changed"
	}
	return lacksIndexes(t)
}

func lacksIndexErrors(t *storeTrial) string {
	if t.config.NoIndexErrors {
		return "NoIndexErrors: an index function that fails is not an error of the store"
	}
	return lacksIndexes(t)
}

func (t *storeTrial) method(name string) reflect.Value {
	return reflect.ValueOf(t.store).MethodByName(name)
}

func (t *storeTrial) addIndexers(functions map[string]indexFunc) error {
	add := t.method("AddIndexers")
	indexers := reflect.MakeMap(add.Type().In(0))
	for name, function := range functions {
		indexers.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(function).Convert(indexers.Type().Elem()))
	}
	if err, failed := add.Call([]reflect.Value{indexers})[0].Interface().(error); failed {
		return fmt.Errorf("AddIndexers(%q): %w", slices.Sorted(maps.Keys(functions)), err)
	}
	return nil
}

// indexNames returns the names in GetIndexers, and the map itself.
func (t *storeTrial) indexNames() (names []string, indexers reflect.Value) {
	indexers = t.method("GetIndexers").Call(nil)[0]
	for _, name := range indexers.MapKeys() {
		names = append(names, name.String())
	}
	slices.Sort(names)
	return names, indexers
}

// someIndexes has an index with one value for each object, one with several or none, and one with the same value for
// all.
func (t *storeTrial) someIndexes() map[string]indexFunc {
	return map[string]indexFunc{
		"by mark":   func(obj any) ([]string, error) { return []string{t.config.Mark(obj)}, nil },
		"by digits": func(obj any) ([]string, error) { return strings.Split(t.config.Mark(obj), "")[1:], nil },
		"all":       func(any) ([]string, error) { return []string{"all"}, nil },
	}
}

// failing returns an index function that fails for the mark.
func (t *storeTrial) failing(mark string) indexFunc {
	return func(obj any) ([]string, error) {
		if t.config.Mark(obj) == mark {
			return nil, errors.New("no index value")
		}
		return []string{t.config.Mark(obj)}, nil
	}
}

// indexed compares an index with a full scan of the store.
func (t *storeTrial) indexed(name string, function indexFunc) error {
	reader := t.store.(indexReader)
	scan := map[string][]string{}
	for _, obj := range t.store.(storeReader).List() {
		values, err := function(obj)
		if err != nil {
			return fmt.Errorf("the store holds %s, which cannot be indexed: %w", t.textOf(obj), err)
		}
		for _, value := range values {
			if key := t.config.Key(obj); !slices.Contains(scan[value], key) {
				scan[value] = append(scan[value], key)
			}
		}
	}
	values, want := reader.ListIndexFuncValues(name), slices.Sorted(maps.Keys(scan))
	slices.Sort(values)
	if !slices.Equal(values, want) {
		return fmt.Errorf("ListIndexFuncValues(%q) is %q, a full scan %q", name, values, want)
	}
	for value, keys := range scan {
		slices.Sort(keys)
		if err := t.indexHas(reader, name, value, keys); err != nil {
			return err
		}
	}
	return t.indexHas(reader, name, "a value that nothing has", nil)
}

func (t *storeTrial) indexHas(reader indexReader, name, value string, want []string) error {
	keys, err := reader.IndexKeys(name, value)
	keys = slices.Sorted(slices.Values(keys))
	if err != nil || !slices.Equal(keys, want) {
		return fmt.Errorf("IndexKeys(%q, %q) is %q (%w), a full scan %q", name, value, keys, orNone(err), want)
	}
	objects, err := reader.ByIndex(name, value)
	if found, wrong := t.keysOf(objects); wrong != nil || err != nil || !slices.Equal(found, want) {
		return fmt.Errorf("ByIndex(%q, %q) has %q (%w, %w), a full scan %q", name, value, found, orNone(err), orNone(wrong), want)
	}
	return nil
}

var errNone = errors.New("no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func (t *storeTrial) keysOf(objects []any) (keys []string, err error) {
	for _, obj := range objects {
		if isNil(obj) {
			return nil, errors.New("a nil among the objects")
		}
		keys = append(keys, t.config.Key(obj))
	}
	slices.Sort(keys)
	return keys, nil
}

func (t *storeTrial) allIndexed() error {
	for name, function := range t.someIndexes() {
		if err := t.indexed(name, function); err != nil {
			return err
		}
	}
	return nil
}

// randomWrites are a script with a fixed seed, so that a failure is repeatable.
const (
	randomWrites = 300
	randomSeed   = 20
)

func checkIndexes(t *storeTrial) error {
	if err := t.addIndexers(t.someIndexes()); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(randomSeed, 0))
	text := func() string {
		return fmt.Sprintf("%c=%d", 'a'+random.IntN(8), random.IntN(1000))
	}
	for n := range randomWrites {
		var err error
		var write string
		switch random.IntN(8) {
		case 0:
			// Names in a list are unique.
			var list []string
			for _, name := range random.Perm(8)[:random.IntN(8)] {
				list = append(list, fmt.Sprintf("%c=%d", 'a'+name, random.IntN(1000)))
			}
			write = fmt.Sprintf("replace %q", list)
			err = t.replace(strconv.Itoa(n), list...)
		case 1, 2, 3:
			write = "delete " + text()
			err = t.write(write)
		default:
			write = "update " + text()
			err = t.write(write)
		}
		if err == nil {
			err = t.allIndexed()
		}
		if err != nil {
			return fmt.Errorf("after write %d of the script, %s: %w", n+1, write, err)
		}
	}
	return t.checkIndexOf()
}

// checkIndexOf checks Index, which looks up by an object instead of a value.
func (t *storeTrial) checkIndexOf() error {
	if err := t.replace("1000", "a=12", "b=12", "c=345", "d=14"); err != nil {
		return err
	}
	for _, test := range []struct {
		index, text string
		want        []string
	}{
		{"by mark", "x=12", []string{"a", "b"}},
		{"by mark", "a=345", []string{"c"}},
		{"by mark", "x=6", nil},
		{"by digits", "x=9456", []string{"c", "d"}}, // c has two of the values
		{"by digits", "x=9446", []string{"c", "d"}},
	} {
		objects, err := t.store.(indexReader).Index(test.index, t.object(test.text))
		if err != nil {
			return fmt.Errorf("an Index of an object that is not stored: %w", err)
		}
		found, err := t.keysOf(objects)
		for at := range found {
			found[at] = found[at][strings.LastIndex(found[at], "/")+1:]
		}
		if err != nil || !slices.Equal(found, test.want) {
			return fmt.Errorf("an Index %q with %s has %q (%w), not %q", test.index, test.text, found, orNone(err), test.want)
		}
	}
	return nil
}
