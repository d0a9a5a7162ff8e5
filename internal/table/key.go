package table

import (
	"hash/maphash"
	"strings"
)

// Key is the key of an object: a text, taken apart at its first slash. What stands before
// it, a namespace as a rule, is shared by many keys and stored once.
type Key struct {
	space, name string
	// spaced is true if there is a slash: "/a" and "a" are two keys.
	spaced bool
	// origin says whether there is a text. It takes no part in ==: see key_text.go. There is
	// no fifth field: Go keeps a struct in registers up to four.
	origin origin
}

// KeyOf is the key with a text. It knows that text again: see key_text.go.
func KeyOf(text string) Key {
	space, name, spaced := strings.Cut(text, "/")
	if !spaced {
		return Key{name: text}
	}
	if name == "" { // wherever an empty string points to
		return Key{space: space, spaced: true}
	}
	return Key{space: space, name: name, spaced: true, origin: fromText()}
}

// Named is the key whose text is namespace/name, or name where the namespace is empty. No
// text is made for it.
func Named(namespace, name string) Key {
	switch {
	case namespace == "":
		return KeyOf(name)
	case strings.IndexByte(namespace, '/') >= 0:
		return KeyOf(namespace + "/" + name)
	}
	return Key{space: namespace, name: name, spaced: true}
}

// String is the text: the one that KeyOf was given, or a copy.
func (k Key) String() string {
	if text, ok := k.text(); ok {
		return text
	}
	return k.space + "/" + k.name
}

// Is says whether the key has a text.
func (k Key) Is(text string) bool {
	if !k.spaced {
		return k.name == text
	}
	at := len(k.space)
	return len(text) == at+1+len(k.name) && text[at] == '/' && text[:at] == k.space && text[at+1:] == k.name
}

// IsIn says whether the text begins with prefix, whose only slash is its last character.
func (k Key) IsIn(prefix string) bool {
	return k.spaced && k.space == prefix[:len(prefix)-1]
}

// usualText is as long as most texts of keys are; for those it takes a moment to put one
// together.
const usualText = 128

// hash is that of the text.
func (k Key) hash(seed maphash.Seed) uint64 {
	if !k.spaced {
		return hashOfText(seed, k.name)
	}
	if size := len(k.space) + 1 + len(k.name); size <= usualText {
		var text [usualText]byte
		at := copy(text[:], k.space)
		text[at] = '/'
		copy(text[at+1:], k.name)
		return maphash.Bytes(seed, text[:size])
	}
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(k.space)
	_ = h.WriteByte('/')
	_, _ = h.WriteString(k.name)
	return h.Sum64()
}

// hashOfText is keyed with a secret of the process: whoever chooses names cannot make many
// of them meet.
func hashOfText(seed maphash.Seed, text string) uint64 { return maphash.String(seed, text) }
