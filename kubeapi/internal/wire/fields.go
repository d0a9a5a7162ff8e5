package wire

// Fields are those of an object that are wanted, in the two ways in which encodings name
// them. They are built once and never changed, so that any number of readers may share them.
//
// What holds whichever way it is: lists are walked through, each element having the fields
// that are wanted of it; a field that is wanted as a whole is kept as it came, byte by
// byte; and an unwanted field is neither kept nor looked at any further than to find its
// end. Objects and elements of lists stay where one of their fields is wanted, though
// nothing may be left in them: a decoder makes the same of them as of the whole, less what
// is not wanted.
type Fields struct {
	// Names are for encodings that name fields.
	Names *Names
	// Numbers are for protobuf; nil if the Go type does not tell what they are.
	Numbers *Numbers
}

// Names are the wanted fields of an object, or keys of a map: on the wire they are alike.
type Names struct {
	// Whole says that all is wanted, whatever else is named.
	Whole bool
	named []namedField
}

// namedField is one of few: users name a handful in any one object, which is found faster
// by comparing than by a hash.
type namedField struct {
	name  string
	below *Names
}

// Find returns the wanted fields below a field, nil if there are none.
func (n *Names) Find(name []byte) *Names {
	for i := range n.named {
		if n.named[i].name == string(name) {
			return n.named[i].below
		}
	}
	return nil
}

// Below is Find for building: it makes the entry if there is none.
func (n *Names) Below(name string) *Names {
	if below := n.Find([]byte(name)); below != nil {
		return below
	}
	below := &Names{}
	n.named = append(n.named, namedField{name, below})
	return below
}

// Numbers are the wanted fields of a protobuf message. Those of a field that is a map are
// its wanted keys; they alone have no number.
type Numbers struct {
	// Whole says that all is wanted, whatever else is named.
	Whole    bool
	numbered []numberedField
	keys     []keyedEntry
}

type numberedField struct {
	number int32
	below  *Numbers
}

type keyedEntry struct {
	key   string
	below *Numbers
}

// Find returns the wanted fields below a field, nil if there are none.
func (n *Numbers) Find(number int32) *Numbers {
	for i := range n.numbered {
		if n.numbered[i].number == number {
			return n.numbered[i].below
		}
	}
	return nil
}

// Below is Find for building: it makes the entry if there is none.
func (n *Numbers) Below(number int32) *Numbers {
	if below := n.Find(number); below != nil {
		return below
	}
	below := &Numbers{}
	n.numbered = append(n.numbered, numberedField{number, below})
	return below
}

// IsMap says that keys are wanted, so that each message is an entry.
func (n *Numbers) IsMap() bool { return len(n.keys) > 0 }

// FindKey returns the wanted fields of the entry with a key, which is a message of two fields;
// nil if nothing is.
func (n *Numbers) FindKey(key []byte) *Numbers {
	for i := range n.keys {
		if n.keys[i].key == string(key) {
			return n.keys[i].below
		}
	}
	return nil
}

// BelowKey is FindKey for building: it makes the entry if there is none.
func (n *Numbers) BelowKey(key string) *Numbers {
	if below := n.FindKey([]byte(key)); below != nil {
		return below
	}
	below := &Numbers{}
	n.keys = append(n.keys, keyedEntry{key, below})
	return below
}
