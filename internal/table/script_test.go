package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzTable runs a script of bytes on a table and a model of maps, and compares both. It also
// compares kept snapshots with the model at that time.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x10\x21\x32\x43\x54\x65\x0b\x00\x01\x05\x06\x01"))
	f.Add([]byte{9, 0, 3, 7, 11, 8, 50, 1, 2, 3, 4, 5, 6, 7, 8, 11, 10, 3, 12, 11, 13, 11, 0, 1, 1, 6, 1})
	f.Add([]byte{13, 9, 7, 1, 5, 11, 10, 0, 12, 12, 11, 9, 3, 3, 3, 13, 11, 8, 33, 9, 9, 9, 15, 0, 14, 15, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 300 {
			return
		}
		newScriptRun(t, script).run()
	})
}

func TestATableIsItsModelAndItsSnapshotsStayAsTheyWere(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 600)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newScriptRun(t, script).run() }) {
			return
		}
	}
}

type object struct{ n int }

type value struct{ a, b string }

// scriptRun is a table, its expected content, and the rest of the script.
type scriptRun struct {
	*testing.T
	table  *Table
	model  *model
	script []byte
	// steps counts the steps, which makes objects differ.
	steps int
	kept  []keptSnapshot
}

type keptSnapshot struct {
	snapshot *Snapshot
	was      *model
}

func newScriptRun(t *testing.T, script []byte) *scriptRun {
	r := &scriptRun{T: t, script: script}
	indexes := int(r.next()) % 4
	r.model = newModel(indexes)
	r.table = New(indexes, func() string { return r.model.label })
	return r
}

// next returns the next byte of the script, 0 at its end.
func (r *scriptRun) next() byte {
	if len(r.script) == 0 {
		return 0
	}
	b := r.script[0]
	r.script = r.script[1:]
	return b
}

func (r *scriptRun) run() {
	for len(r.script) > 0 {
		r.steps++
		r.step(r.next() % 16)
		r.lookUp(r.next())
	}
	r.keep()
	for _, k := range r.kept {
		k.was.check(r.T, k.snapshot)
	}
}

func (r *scriptRun) step(op byte) {
	switch op {
	default: // 0 to 5
		r.write(1, func(w *Table) { r.put(w, int(r.next()), r.next()) })
	case 6, 7:
		r.write(1, func(w *Table) { r.remove(w, int(r.next())) })
	case 8:
		r.writeSome()
	case 9:
		r.fill()
	case 10:
		r.keepOnly()
	case 11:
		r.keep()
	case 12:
		r.pack()
	case 13:
		r.addIndex()
	case 14:
		r.table.Begin(0)
		r.table.Commit(func() { r.model.label = fmt.Sprint(r.steps) })
	case 15:
		s := r.table.Snapshot()
		require.Same(r, s, r.table.Snapshot(), "nothing was written in between")
	}
}

// write is a write with so many changes and a new label.
func (r *scriptRun) write(changes int, change func(*Table)) {
	w := begin(r.table, changes)
	change(w)
	w.Commit(func() { r.model.label += "+" })
}

// writeSome writes up to 64 changes. Up to 32 are made in place.
func (r *scriptRun) writeSome() {
	changes := 1 + int(r.next())%64
	from := int(r.next())
	r.write(changes, func(w *Table) {
		for i := range changes {
			if (i+from)%3 == 0 {
				r.remove(w, from+i)
				continue
			}
			r.put(w, from+i, byte(from+5*i))
		}
	})
}

// fill puts hundreds of objects.
func (r *scriptRun) fill() {
	objects, from, kind := 200*(1+int(r.next())%8), int(r.next()), int(r.next())
	r.write(objects, func(w *Table) {
		for i := range objects {
			r.put(w, 10*from+i, byte(kind+i/7))
		}
	})
}

// keepOnly removes most or few of all objects.
func (r *scriptRun) keepOnly() {
	modulus := 2 + int(r.next())%20
	few := r.next()%2 == 0
	r.write(1<<20, func(w *Table) {
		stays := func(key string) bool { return (len(key)+int(key0(key)))%modulus == 0 == few }
		keepOnly(w, func(key Key) bool { return stays(key.String()) })
		for key := range r.model.objects {
			if !stays(key) {
				r.model.remove(key)
			}
		}
	})
}

// key0 returns the last byte of a key, 0 for the empty key.
func key0(key string) byte {
	if key == "" {
		return 0
	}
	return key[len(key)-1]
}

// keep takes a snapshot. If there are five already, it checks the oldest and drops it.
func (r *scriptRun) keep() {
	r.kept = append(r.kept, keptSnapshot{r.table.Snapshot(), r.model.clone()})
	if len(r.kept) > 5 {
		r.kept[0].was.check(r.T, r.kept[0].snapshot)
		r.kept = r.kept[1:]
	}
}

// pack packs unconditionally.
func (r *scriptRun) pack() {
	r.table.pack()
}

func (r *scriptRun) addIndex() {
	index := len(r.model.values)
	if index == 5 {
		return
	}
	r.write(many, func(w *Table) {
		w.AddIndexes(1, func(any) [][]string { return nil })
		r.model.addIndexes(1)
		w.each(func(number uint32, key Key, _ any) {
			values := valuesFor(index, len(key.String()), byte(len(key.String())))
			w.Index(index, number, slices.Sorted(slices.Values(values)))
			r.model.values[index][key.String()] = values
		})
	})
}

func (r *scriptRun) put(w *Table, n int, kind byte) {
	key := scriptKey(n)
	values := make([][]string, len(r.model.values))
	for index := range values {
		values[index] = valuesFor(index, n, kind)
	}
	obj := r.object(kind)
	place := w.Seek(KeyOf(key))
	old := w.put(KeyOf(key), obj, values)
	r.wasThere(key, old.Object, old.Exists)
	r.model.put(key, obj, values)
	if put := w.Find(KeyOf(key), place); !put.Exists || !same(put.Object, obj) || put.Number != old.Number {
		r.Fatalf("the write does not find what it has put under %.50q", key)
	}
}

func (r *scriptRun) remove(w *Table, n int) {
	key := scriptKey(n)
	place := w.Seek(KeyOf(key))
	old := w.remove(KeyOf(key))
	r.wasThere(key, old.Object, old.Exists)
	r.model.remove(key)
	require.False(r, w.Find(KeyOf(key), place).Exists)
}

// wasThere compares the previous state that a change returned with the model.
func (r *scriptRun) wasThere(key string, old any, existed bool) {
	want, had := r.model.objects[key]
	if had != existed || !same(want, old) {
		r.Fatalf("%.50q: was there: %v, want %v", key, existed, had)
	}
}

func (r *scriptRun) lookUp(n byte) {
	key := scriptKey(int(n))
	found, exists := r.table.Get(key)
	r.wasThere(key, found, exists)
	slot := r.table.Find(KeyOf(key), r.table.Seek(KeyOf(key)))
	r.wasThere(key, slot.Object, slot.Exists)
	require.Equal(r, len(r.model.objects), r.table.Len())
}

// scriptKey returns keys of all forms, most of them usual ones.
func scriptKey(n int) string {
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "/"
	case n == 2:
		return strings.Repeat("long", 20_000) // too long for the length field of a cell
	case n%8 == 3:
		return fmt.Sprintf("plain-%d", n)
	case n%8 == 4:
		return fmt.Sprintf("a/b/%d", n)
	case n%8 == 5:
		return fmt.Sprintf("/%d", n)
	case n%8 == 6:
		return fmt.Sprintf("%d/", n)
	case n%8 == 7:
		return fmt.Sprintf("ns-%d/%0200d", n%5, n)
	}
	return fmt.Sprintf("ns-%d/%d", n%7, n)
}

// object is usually a pointer, and sometimes another kind.
func (r *scriptRun) object(kind byte) any {
	switch kind % 32 {
	case 0:
		return fmt.Sprint("text ", r.steps)
	case 1:
		return map[string]int(nil)
	case 2:
		return r.steps
	case 3:
		return value{"a", fmt.Sprint(r.steps)}
	case 4:
		return (*object)(nil)
	case 6:
		return struct{}{}
	case 7:
		return &value{}
	}
	return &object{r.steps}
}

// valuesFor returns no value, one or several. In the first index nearly all objects have the same
// one.
func valuesFor(index, n int, kind byte) []string {
	switch index {
	case 0:
		if kind%16 == 0 {
			return nil
		}
		return []string{"all"}
	case 1:
		return []string{fmt.Sprint("of ", int(kind)%9, " and ", n%11)}
	case 2:
		return []string{fmt.Sprint(n)}[:kind%2]
	}
	var several []string
	for i := range int(kind) % 5 {
		several = append(several, fmt.Sprint(index, " ", (n/3+i*i*int(kind))%300*5+i)) // i makes them different
	}
	return several
}
