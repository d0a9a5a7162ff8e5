package table

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numberedObject has its key and the number of its last write. Its value in the first index is
// derived from that.
type numberedObject struct {
	key string
	n   uint64
}

const classes = 5

func (o *numberedObject) class() string { return fmt.Sprint("class ", o.n%classes) }

// consistency is a writer that always writes "ns/a" before "ns/b", and readers that must never see
// the second newer than the first.
type consistency struct {
	*testing.T
	table *Table
	// The label has the last writes of both objects.
	a, b  uint64
	ended atomic.Bool
}

func (c *consistency) label() string { return fmt.Sprint(c.a, " ", c.b) }

func (c *consistency) put(w *Table, key string, n uint64) {
	o := &numberedObject{key, n}
	w.put(KeyOf(key), o, [][]string{{o.class()}, {"all", o.class(), key}})
}

func (c *consistency) write(changes int, n uint64, keys ...string) {
	w := begin(c.table, changes)
	a, b := c.a, c.b
	for _, key := range keys {
		if c.put(w, key, n); key == "ns/a" {
			a = n
		} else if key == "ns/b" {
			b = n
		}
	}
	for i := range changes - len(keys) {
		key := fmt.Sprint("other-", i%3, "/", i)
		if n%3 == uint64(i%3) {
			w.remove(KeyOf(key))
		} else {
			c.put(w, key, n)
		}
	}
	w.Commit(func() { c.a, c.b = a, b })
}

// writeAll writes once in each way.
func (c *consistency) writeAll(n uint64) {
	switch n % 5 {
	case 0: // both in one write in place
		c.write(2, n, "ns/a", "ns/b")
	case 1: // one by one
		c.write(1, n, "ns/a")
		c.write(1, n, "ns/b")
	case 2: // together with others, staged
		c.write(100, n, "ns/a", "ns/b")
	case 3: // one in place, one staged
		c.write(20, n, "ns/a")
		c.write(100, n, "ns/b")
	case 4: // new cells for both
		w := begin(c.table, 4)
		w.remove(KeyOf("ns/b"))
		w.remove(KeyOf("ns/a"))
		c.put(w, "ns/a", n)
		c.put(w, "ns/b", n)
		w.Commit(func() { c.a, c.b = n, n })
	}
	if n%50 == 0 {
		c.table.pack()
	}
}

// get returns an object by its key, which always exists.
func (c *consistency) get(key string) uint64 {
	found, exists := c.table.Get(key)
	if !assert.True(c, exists, key) {
		return 0
	}
	o := found.(*numberedObject)
	if o.key != key {
		c.Errorf("%s is %+v", key, o)
	}
	return o.n
}

// getBoth gets the object that was written last first.
func (c *consistency) getBoth() (saw uint64) {
	b := c.get("ns/b")
	a := c.get("ns/a")
	if a < b {
		c.Errorf("a is of write %d, b of write %d", a, b)
	}
	return a
}

// getOthers gets the objects that are added and removed.
func (c *consistency) getOthers() (saw uint64) {
	for i := range 20 {
		key := fmt.Sprint("other-", i%3, "/", i)
		if found, exists := c.table.Get(key); exists {
			o := found.(*numberedObject)
			if saw = o.n; o.key != key {
				c.Errorf("%s is %+v", key, o)
			}
		}
	}
	return saw
}

func (c *consistency) snapshot() (saw uint64) {
	s := c.table.Snapshot()
	for range 2 { // it does not change
		first, foundA := s.Get(KeyOf("ns/a"))
		second, foundB := s.Get(KeyOf("ns/b"))
		if !assert.True(c, foundA && foundB) {
			return 0
		}
		a, b := first.Object().(*numberedObject).n, second.Object().(*numberedObject).n
		if a < b || fmt.Sprint(a, " ", b) != s.Version {
			c.Errorf("%+v has a of write %d, b of write %d", s.Version, a, b)
		}
		saw = a
	}
	return saw
}

func (c *consistency) iterate() (saw uint64) {
	s := c.table.Snapshot()
	met := map[string]uint64{}
	s.EachWithKey(func(key string, e Entry) bool {
		o := e.Object().(*numberedObject)
		if o.key != key {
			c.Errorf("%s is %+v", key, o)
		}
		met[key] = o.n
		return true
	})
	version := fmt.Sprint(met["ns/a"], " ", met["ns/b"])
	if len(met) != s.Len() || met["ns/a"] < met["ns/b"] || version != s.Version {
		c.Errorf("%+v: %d met of %d, a %d, b %d", s.Version, len(met), s.Len(), met["ns/a"], met["ns/b"])
	}
	return met["ns/a"]
}

func (c *consistency) byIndex() (saw uint64) {
	s := c.table.Snapshot()
	met := 0
	for class := range classes {
		value := fmt.Sprint("class ", class)
		s.Having(0, value, func(e Entry) bool {
			if o := e.Object().(*numberedObject); o.class() != value {
				c.Errorf("%s is found by %s", o.class(), value)
			} else if met++; o.key == "ns/a" {
				saw = o.n
			}
			return true
		})
		assert.Equal(c, s.HavingLen(0, value), s.HavingLen(1, value))
	}
	isCounted := met == s.Len() && s.HavingLen(1, "all") == met && s.HavingLen(1, "ns/b") == 1
	if !isCounted || !strings.HasPrefix(s.Version, fmt.Sprint(saw, " ")) {
		c.Errorf("%+v: %d of %d are found by value, a of write %d", s.Version, met, s.Len(), saw)
	}
	return saw
}

// read requires that a reader sees so many states, which must not become older.
func (c *consistency) read(states int, state func() (saw uint64), ordered bool) {
	last, seen := uint64(0), 0
	for seen < states && !c.Failed() {
		saw := state()
		if ordered && saw < last {
			c.Errorf("write %d was seen after write %d", saw, last)
		}
		if saw == last {
			runtime.Gosched() // let the writer run
			continue
		}
		last, seen = saw, seen+1
	}
}

func TestNoReaderSeesTheSecondOfTwoWritesWithoutTheFirst(t *testing.T) {
	c := &consistency{T: t}
	c.table = New(2, c.label)
	c.write(2, 1, "ns/a", "ns/b")
	var readers sync.WaitGroup
	reader := func(states int, ordered bool, state func() uint64) {
		readers.Go(func() { c.read(states, state, ordered) })
	}
	for range 2 {
		reader(300, true, c.getBoth)
		reader(100, false, c.getOthers)
		reader(150, true, c.snapshot)
		reader(60, true, c.iterate)
		reader(60, true, c.byIndex)
	}
	go func() {
		readers.Wait()
		c.ended.Store(true)
	}()
	n := uint64(1)
	for !c.ended.Load() {
		n++
		c.writeAll(n)
	}
	readers.Wait()
	require.Greater(t, n, uint64(300), "each Get reader has seen so many states")
}

// other is another type: its objects must not be mistaken for numberedObjects.
type other struct {
	_ [3]uint64
	n uint64
}

// The type and the pointer of an object are two words, so half of a cell would be an object of the
// wrong type. A key that shares its hash is found with a lock.
func TestGetReturnsNoHalfOfACell(t *testing.T) {
	for name, twin := range map[string]bool{"on the short way": false, "on the long way": true} {
		t.Run(name, func(t *testing.T) {
			table, key := newTable(0), KeyOf("ns/a")
			w := begin(table, 2)
			if twin {
				number := w.add(key.hash(table.seed))
				other := w.types.content(0, "", w.namespaceNumber("another"), longText{})
				w.writable(number).store(other, Origin{})
			}
			w.put(key, &numberedObject{}, nil)
			w.Commit(nil)
			readWhileWritten(t, table, key, 500_000)
		})
	}
}

// readWhileWritten writes a cell continuously while two goroutines read it: at least so often, and
// until there were enough writes.
func readWhileWritten(t *testing.T, table *Table, key Key, gets int) {
	const writes = 1_000
	var readers, written atomic.Int64
	for range 2 {
		readers.Add(1)
		go func() {
			defer readers.Add(-1)
			last := uint64(0)
			for i := 0; i < gets || written.Load() < writes; i++ {
				found, _ := table.GetKey(key)
				n := uint64(0)
				switch o := found.(type) {
				case *numberedObject:
					n = o.n
				case *other:
					n = o.n
				}
				if n < last || n%2 != 0 != (reflect.TypeOf(found) == reflect.TypeFor[*other]()) {
					t.Errorf("%T of write %d after %d", found, n, last)
					return
				}
				last = n
			}
		}()
	}
	n := uint64(0)
	for readers.Load() > 0 {
		n++
		var object any = &numberedObject{n: n}
		if n%2 != 0 {
			object = &other{n: n}
		}
		w := begin(table, 1)
		w.put(key, object, nil)
		w.Commit(nil)
		written.Add(1)
	}
}
