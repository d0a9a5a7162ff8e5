package cache

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// picture is all that a snapshot says, by means that do not depend on each other.
type picture struct {
	version string
	objects map[string]any
	// indexes have, for each index and value, the keys of what has it, sorted.
	indexes map[string]map[string][]string
}

// pictureOf asks a snapshot for everything that it has, and fails where one answer is at
// odds with another.
func pictureOf(s Snapshot, indexes ...string) (picture, error) {
	p := picture{version: s.ResourceVersion(), objects: map[string]any{}, indexes: map[string]map[string][]string{}}
	for key, obj := range s.All() {
		p.objects[key] = obj
		if got, exists := s.Get(key); !exists || got != obj {
			return p, fmt.Errorf("Get(%q) is %v, All has %v", key, got, obj)
		}
	}
	listed := s.List()
	if len(listed) != len(p.objects) || s.Len() != len(listed) || len(slices.Collect(s.Objects())) != len(listed) {
		return p, fmt.Errorf("List has %d objects, Len says %d, All has %d", len(listed), s.Len(), len(p.objects))
	}
	for _, obj := range listed {
		if p.objects[nameOf(obj)] != obj {
			return p, fmt.Errorf("List has %s as All has not", nameOf(obj))
		}
	}
	for _, index := range indexes {
		var err error
		if p.indexes[index], err = pictureOfIndex(s, index); err != nil {
			return p, err
		}
	}
	return p, nil
}

func pictureOfIndex(s Snapshot, index string) (map[string][]string, error) {
	keys := map[string][]string{}
	values, err := s.IndexValues(index)
	for _, value := range values {
		objects, byErr := s.ByIndex(index, value)
		all, allErr := s.AllByIndex(index, value)
		if err := errors.Join(byErr, allErr); err != nil {
			return nil, err
		}
		if again := slices.Collect(all); !slices.Equal(objects, again) {
			return nil, fmt.Errorf("index %q, %q: ByIndex has %d objects, AllByIndex %d", index, value, len(objects), len(again))
		}
		for _, obj := range objects {
			key := nameOf(obj)
			if stored, _ := s.Get(key); stored != obj {
				return nil, fmt.Errorf("index %q has another %s under %q than there is", index, key, value)
			}
			keys[value] = append(keys[value], key)
		}
		slices.Sort(keys[value])
	}
	return keys, err
}

// consistent is nil if each index says what its function says of the objects.
func (p picture) consistent(functions Indexers) error {
	set := (&indexerSet{}).with(functions)
	for name, indexed := range p.indexes {
		want := map[string][]string{}
		for key, obj := range p.objects {
			at, _ := set.position(name)
			values, err := set.appendValues(nil, at, obj)
			if err != nil {
				return err
			}
			for _, value := range values {
				want[value] = append(want[value], key)
			}
		}
		for _, keys := range want {
			slices.Sort(keys)
		}
		if !maps.EqualFunc(want, indexed, slices.Equal) {
			return fmt.Errorf("index %q says %v, the objects at version %q say %v", name, indexed, p.version, want)
		}
	}
	return nil
}

// differs is nil if both are of one state, down to the objects' addresses.
func (p picture) differs(other picture) error {
	switch {
	case p.version != other.version:
		return fmt.Errorf("its version was %q and is %q", p.version, other.version)
	case !maps.Equal(p.objects, other.objects):
		return fmt.Errorf("its objects have changed: there were %d, there are %d", len(p.objects), len(other.objects))
	}
	for name, before := range p.indexes {
		if !maps.EqualFunc(before, other.indexes[name], slices.Equal) {
			return fmt.Errorf("its index %q was %v and is %v", name, before, other.indexes[name])
		}
	}
	return nil
}

// kept is a snapshot and what it once said.
type kept struct {
	snapshot Snapshot
	indexes  []string
	picture  picture
}

func (k kept) stillSo() error {
	now, err := pictureOf(k.snapshot, k.indexes...)
	if err != nil {
		return err
	}
	return k.picture.differs(now)
}

// chronicle writes to a store, at random, and knows what the store must hold.
type chronicle struct {
	*testing.T
	store   *cache
	random  *rand.Rand
	indexes Indexers
	// objects and version are what has been written.
	objects map[string]any
	version string
	serial  int
	kept    []kept
}

func newChronicle(t *testing.T, seed uint64) *chronicle {
	indexes := Indexers{tagIndex: byTag, NamespaceIndex: MetaNamespaceIndexFunc}
	return &chronicle{
		T: t, store: NewIndexer(MetaNamespaceKeyFunc, indexes).(*cache), random: rand.New(rand.NewPCG(seed, 0)),
		indexes: indexes, objects: map[string]any{},
	}
}

// some are new states of some keys, of which there are many once in a while, so that a
// table takes several chunks, and is packed when they have gone.
func (c *chronicle) some(most, keys int) (list []any) {
	for range 1 + c.random.IntN(most) {
		c.serial++
		o := podAt(string(rune('a'+c.random.IntN(3))), itoa(c.random.IntN(keys)), itoa(c.serial))
		tags := make([]string, c.random.IntN(4))
		for i := range tags {
			tags[i] = itoa(c.random.IntN(9))
		}
		list = append(list, tagged(o, tags...))
	}
	return list
}

// keep makes the model hold the states.
func (c *chronicle) keep(list []any) {
	for _, obj := range list {
		c.objects[nameOf(obj)] = obj
	}
}

// step does one thing of all that may be done to a store.
func (c *chronicle) step() {
	switch c.random.IntN(12) {
	case 0, 1, 2:
		one := c.some(1, 60)
		c.keep(one)
		require.NoError(c, c.store.Update(one[0]))
	case 3, 4:
		gone := c.some(1, 60)[0]
		delete(c.objects, nameOf(gone))
		require.NoError(c, c.store.Delete(gone))
	case 5:
		c.replace(c.some(200, 60))
	case 6:
		if c.random.IntN(4) == 0 {
			c.replace(c.some(2500, 1000))
		}
	case 7, 8:
		c.batch(c.some(80, 60)) // more and fewer than are written where readers see them
	case 9:
		c.relist(c.some(60, 60))
	case 10:
		c.version = itoa(c.serial)
		c.store.Bookmark(c.version)
	case 11:
		name := "index " + itoa(len(c.indexes))
		if len(c.indexes) < 6 {
			c.indexes[name] = byTag
			require.NoError(c, c.store.AddIndexers(Indexers{name: byTag}))
		}
	}
}

func (c *chronicle) replace(list []any) {
	clear(c.objects)
	c.keep(list)
	c.version = itoa(c.serial)
	require.NoError(c, c.store.Replace(list, c.version))
}

func (c *chronicle) batch(list []any) {
	c.version = itoa(c.serial)
	b := batch{version: c.version}
	for _, obj := range list {
		kind := Updated
		if c.random.IntN(3) == 0 {
			kind = Deleted
			delete(c.objects, nameOf(obj))
		} else {
			c.keep([]any{obj})
		}
		b.changes = append(b.changes, changeOf(kind, obj.(*object)))
	}
	applyBatch(c.store, c.Context(), b, false, nil)
}

// relist replaces in parts, which show at once if it is the first to be committed.
func (c *chronicle) relist(list []any) {
	r := replacing{c.T, c.store.BeginReplace(ReplaceOptions{Aside: true})}
	for part := range slices.Chunk(list, 25) {
		r.items(part...)
		c.look()
	}
	clear(c.objects)
	c.keep(list)
	c.version = itoa(c.serial)
	r.commit(c.version)
}

// look takes a snapshot and compares it with what must be there.
func (c *chronicle) look() {
	s := c.store.Snapshot()
	names := slices.Collect(maps.Keys(c.indexes))
	have, err := pictureOf(s, names...)
	require.NoError(c, err)
	require.NoError(c, picture{version: c.version, objects: c.objects}.differs(picture{version: have.version, objects: have.objects}))
	require.NoError(c, have.consistent(c.indexes))
	if len(c.objects) < 300 || c.random.IntN(4) == 0 {
		c.kept = append(c.kept, kept{s, names, have})
	}
}
