package footprint

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// minShare is the part of all memory below which a field is not in a report.
	minShare = 0.0002
	// A map with more than manyKeys keys is reported with those that have at least keyShare of all
	// memory.
	manyKeys = 64
	keyShare = 0.01
)

// fieldList collects the fields of a report.
type fieldList struct {
	scale float64
	bytes map[*node]float64
	total float64
	list  []Field
}

// fields returns the fields of all objects, largest first, and their memory. scale is the number of
// objects for each measured one.
func (m *meter) fields(scale float64) ([]Field, int64) {
	m.root.spread()
	f := fieldList{scale: scale, bytes: map[*node]float64{}}
	f.total = f.sum(m.root)
	f.add(m.root, "")
	slices.SortFunc(f.list, func(a, b Field) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	return f.list, int64(f.total)
}

// spread adds the inlined values of all places to the nodes of their fields.
func (n *node) spread() {
	for _, p := range n.places {
		p.spread()
	}
	for _, child := range n.children {
		child.spread()
	}
}

// sum computes the memory of a node with everything below it.
func (f *fieldList) sum(n *node) float64 {
	sum := f.scaled(n.own)
	for _, child := range n.children {
		sum += f.sum(child)
	}
	f.bytes[n] = sum
	return sum
}

// scaled returns an amount of all objects.
func (f *fieldList) scaled(a amount) float64 {
	return float64(a.single)*f.scale + float64(a.shared)
}

// add adds the fields of a node and of what is below it, and returns the memory that they have.
func (f *fieldList) add(n *node, path string) float64 {
	below := 0.0
	for _, child := range n.children {
		if f.isListed(n, child) {
			below += f.add(child, path+child.name)
		}
	}
	if path == "" || n.name == anyElement {
		return below // elements have a path only as a part of that of their fields
	}
	f.list = append(f.list, Field{
		Path:       strings.TrimPrefix(path, "."),
		Bytes:      int64(max(f.bytes[n], 0)),
		OwnBytes:   int64(max(f.bytes[n]-below, 0)),
		EmptyBytes: int64(max(f.scaled(n.inStruct), 0)),
	})
	return f.bytes[n]
}

func (f *fieldList) isListed(n, child *node) bool {
	least := minShare
	if len(n.children) > manyKeys {
		least = keyShare
	}
	return child.name == anyElement || f.bytes[child] >= least*f.total
}
