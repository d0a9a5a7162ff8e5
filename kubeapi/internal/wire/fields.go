package wire

// Fields are the wanted fields of an object, by name and by number. They are immutable after
// construction and may be shared.
//
// In both forms, the fields apply to each element of a list. A field that is wanted whole is kept
// byte by byte. Of an unwanted field only the end is found. Objects and list elements in which a
// field is wanted stay, even if nothing remains in them, so a decoder returns the same as for the
// whole object, without the unwanted fields.
type Fields struct {
	// Names are for encodings with field names.
	Names *Names
	// Numbers are for protobuf; nil if the Go type does not have them.
	Numbers *Numbers
}

// Names are the wanted fields of an object, or keys of a map, which look alike on the wire.
type Names struct {
	// Whole means that everything is wanted.
	Whole  bool
	fields []namedField
}

// namedField is an element of a slice, because comparing a handful of names is faster than hashing.
type namedField struct {
	name   string
	fields *Names
}

// Find returns the wanted fields below a field, nil if there are none.
func (n *Names) Find(name []byte) *Names {
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return n.fields[i].fields
		}
	}
	return nil
}

// Below is Find during construction: it adds the entry if there is none.
func (n *Names) Below(name string) *Names {
	if below := n.Find([]byte(name)); below != nil {
		return below
	}
	below := &Names{}
	n.fields = append(n.fields, namedField{name, below})
	return below
}

// Numbers are the wanted fields of a protobuf message. Those of a map field are its wanted keys.
type Numbers struct {
	// Whole means that everything is wanted.
	Whole      bool
	fields     []numberedField
	mapEntries []mapEntry
}

type numberedField struct {
	number int32
	fields *Numbers
}

type mapEntry struct {
	key    string
	fields *Numbers
}

// Find returns the wanted fields below a field, nil if there are none.
func (n *Numbers) Find(number int32) *Numbers {
	for i := range n.fields {
		if n.fields[i].number == number {
			return n.fields[i].fields
		}
	}
	return nil
}

// Below is Find during construction: it adds the entry if there is none.
func (n *Numbers) Below(number int32) *Numbers {
	if below := n.Find(number); below != nil {
		return below
	}
	below := &Numbers{}
	n.fields = append(n.fields, numberedField{number, below})
	return below
}

// IsMap reports whether keys are wanted, so that each message is a map entry.
func (n *Numbers) IsMap() bool { return len(n.mapEntries) > 0 }

// FindKey returns the wanted fields of the map entry with a key, nil if the entry is not wanted.
func (n *Numbers) FindKey(key []byte) *Numbers {
	for i := range n.mapEntries {
		if n.mapEntries[i].key == string(key) {
			return n.mapEntries[i].fields
		}
	}
	return nil
}

// BelowKey is FindKey during construction: it adds the entry if there is none.
func (n *Numbers) BelowKey(key string) *Numbers {
	if below := n.FindKey([]byte(key)); below != nil {
		return below
	}
	below := &Numbers{}
	n.mapEntries = append(n.mapEntries, mapEntry{key, below})
	return below
}
