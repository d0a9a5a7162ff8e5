package footprint

import (
	"regexp"
	"strconv"
)

// Limits of the paths, so that the tree does not grow with the objects.
const (
	maxDepth    = 24
	maxChildren = 1024
)

// node is a field path with the memory that was met at it.
type node struct {
	parent *node
	// name is the end of the path, such as .spec, [*] or ["a/b"].
	name string
	// isClosed is true if everything below belongs to this path.
	isClosed bool
	depth    int
	children map[string]*node
	// places are the types of the values that were met here.
	places []*place
	own    amount
	// inStruct is the size of the field in the structs that have it.
	inStruct amount
}

// amount is memory, or a number of values. More objects have more of what is single, but not of
// what several objects share.
type amount struct {
	single int64
	shared int64
}

// add adds what was claimed.
func (a *amount) add(count int64, c claim) {
	switch c {
	case fresh:
		a.single += count
	case becameShared:
		a.single -= count
		a.shared += count
	}
}

func (a *amount) addTimes(factor int64, other amount) {
	a.single += factor * other.single
	a.shared += factor * other.shared
}

// anyElement stands for every element of a list.
const anyElement = "[*]"

// child returns the node of a field, key or anyElement, or the node itself if its path ends here.
func (n *node) child(name string) *node {
	found := n.children[name]
	if found != nil {
		return found
	}
	if n.isClosed || n.depth == maxDepth || len(n.children) == maxChildren {
		return n
	}
	if n.children == nil {
		n.children = map[string]*node{}
	}
	made := &node{parent: n, name: pathName(name), depth: n.depth + 1}
	made.isClosed = name == managedFieldsSet
	n.children[name] = made
	return made
}

// managedFieldsSet is the field with the names of managed fields. In an unstructured object it is a
// tree, with the object's values in its keys.
const managedFieldsSet = "fieldsV1"

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// pathName returns a name as the end of a path.
func pathName(name string) string {
	switch {
	case name == anyElement:
		return name
	case plainName.MatchString(name):
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}
