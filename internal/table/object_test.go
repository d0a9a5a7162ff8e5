package table

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type number int

func (n number) String() string { return fmt.Sprint(int(n)) }

// kinds returns objects of all kinds of Go types: some are a pointer themselves, some are pointed
// to, and some have no words.
func kinds() []any {
	x := 7
	return []any{
		fmt.Stringer(number(3)), error(fmt.Errorf("e")),
		true, false, 0, 255, 256, -1, int8(1), uint16(2), int32(3), uint64(1 << 63), uintptr(9), 1.5, float32(0), complex(1, 2),
		"", "text", number(4), struct{}{}, [0]int{}, [3]int{1, 2, 3}, [1]*int{&x}, [1]*int{},
		&x, (*int)(nil), &struct{}{}, unsafe.Pointer(&x), unsafe.Pointer(nil),
		value{}, value{"a", "b"}, struct{ p *int }{&x}, struct{ p *int }{}, struct{ e any }{1}, &value{"c", "d"},
		map[string]int(nil), map[string]int{}, map[string]int{"a": 1}, []int(nil), []int{}, []int{1},
		chan int(nil), make(chan int), (func())(nil), new(any),
	}
}

// identical reports whether any two objects have the same type and value.
func identical(a, b any) bool {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	if v.IsValid() && w.IsValid() && v.Type() == w.Type() && v.Kind() == reflect.Func {
		return v.Pointer() == w.Pointer()
	}
	return reflect.DeepEqual(a, b)
}

func TestObjectsOfAllKindsComeBackAsTheyWere(t *testing.T) {
	table := newTable(0)
	for i, obj := range kinds() {
		key := fmt.Sprint(i)
		put(table, key, obj)
		runtime.GC() // a word that is not kept as a pointer would be lost
		found, exists := table.Get(key)
		require.True(t, exists)
		require.True(t, identical(obj, found), "%T: %v", obj, found)
	}
	called := false
	put(table, "f", func() { called = true })
	found, _ := table.Get("f")
	found.(func())()
	require.True(t, called)
	s := table.Snapshot()
	for i, obj := range kinds() {
		e, exists := s.Get(KeyOf(fmt.Sprint(i)))
		require.True(t, exists)
		require.Equal(t, reflect.TypeOf(obj), reflect.TypeOf(e.Object()), "%T", obj)
	}
	require.Len(t, AppendObjectsOf[any](nil, s), len(kinds())+1)
}

// For iterations, the type of a whole chunk is stored.
func TestAnObjectThatReplacesOneOfAnotherTypeIsSeenWithItsOwn(t *testing.T) {
	table := newTable(0)
	want := map[string]any{}
	set := func(key string, obj any) {
		put(table, key, obj)
		want[key] = obj
		got := AppendObjectsOf[any](nil, table.Snapshot())
		require.Len(t, got, len(want))
		for _, obj := range want {
			require.Contains(t, got, obj)
		}
	}
	for i := range 2 * chunkLen {
		set(fmt.Sprint(i), i)
	}
	for _, i := range []int{0, 5, chunkLen} {
		set(fmt.Sprint(i), fmt.Sprint("text ", i))
	}
	set("0", map[string]int(nil))
	for i := range 2 * chunkLen {
		set(fmt.Sprint(i), fmt.Sprint("text ", i))
	}
	remove(table, "1")
	delete(want, "1")
	set("x", 1.5)
}

func TestATypeTooManyAndATooLongNameAreKeptInABox(t *testing.T) {
	kept, long := &newTable(0).types, strings.Repeat("n", maxName)
	store := func(obj any, name string) (id uint32) {
		c := kept.content(obj, name, 0, longText{})
		require.Equal(t, obj, c.object(*kept.all.Load()))
		require.True(t, name == c.text())
		return c.kind & boxed
	}
	require.Equal(t, uint32(1), store(1, long))
	require.Equal(t, uint32(boxed), store(1, long+"n"))
	full := make([]word, boxed-1)
	kept.all.Store(&full)
	require.Equal(t, uint32(boxed-1), store("", ""), "the last number that there is")
	for range 2 {
		for _, obj := range []any{&object{1}, 1.5, value{"a", "b"}} {
			require.Equal(t, uint32(boxed), store(obj, "name"))
		}
		require.Equal(t, uint32(boxed-1), store("text", "name"), "known types still count")
	}
	require.Len(t, *kept.all.Load(), boxed)
}

func TestThousandsOfTypesAreDistinguished(t *testing.T) {
	table := newTable(0)
	const all = 3_000
	objects := make([]any, all)
	w := begin(table, all)
	for i := range all {
		objects[i] = reflect.New(reflect.ArrayOf(i, reflect.TypeFor[byte]())).Elem().Interface()
		w.put(KeyOf(fmt.Sprint(i)), objects[i], nil)
	}
	w.Commit(nil)
	s := table.Snapshot()
	for i, obj := range objects {
		e, _ := s.Get(KeyOf(fmt.Sprint(i)))
		require.Equal(t, reflect.TypeOf(obj), reflect.TypeOf(e.Object()))
	}
}

// Same is true for the result of a read of the same object, whatever its kind, and for no other
// value.
func TestSameIsTrueForTheObjectThatWasKeptAndNoOther(t *testing.T) {
	for _, obj := range kinds() {
		types := &newTable(0).types
		c := types.content(obj, "", 0, longText{})
		require.True(t, Same(obj, c.object(*types.all.Load())), "%T", obj)
	}
	type words struct{ all []string }
	require.False(t, Same(nil, nil))
	one, other := any(words{[]string{"a"}}), any(words{[]string{"a"}})
	require.False(t, Same(one, other), "two values that are equal")
	require.False(t, Same(new(int), new(int)))
	require.False(t, Same(map[string]int{}, map[string]int{}))
	require.False(t, Same((*int)(nil), (*string)(nil)), "of two types")
}

func TestOneFileImportsUnsafe(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, one := range parsed.Imports {
			if one.Path.Value == `"unsafe"` && !strings.HasSuffix(file, "_test.go") {
				found = append(found, file)
			}
		}
	}
	require.Equal(t, []string{"cell.go"}, found)
}
