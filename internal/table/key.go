package table

import (
	"hash/maphash"
	"strings"
)

// Key is the key of an object: a text, cut at its first slash. The part before the slash,
// usually a namespace, is stored once for all keys that share it. Keys are comparable. A text without
// a slash, or that begins with one, is all name.
type Key struct{ space, name string }

// KeyOf is the key with a text.
func KeyOf(text string) Key {
	if slash := strings.IndexByte(text, '/'); slash > 0 {
		return Key{text[:slash], text[slash+1:]}
	}
	return Key{name: text}
}

// Named is the key whose text is namespace/name, or name where the namespace is empty.
func Named(namespace, name string) Key {
	switch {
	case namespace == "":
		return KeyOf(name)
	case strings.IndexByte(namespace, '/') >= 0:
		return KeyOf(namespace + "/" + name)
	}
	return Key{namespace, name}
}

// Parts are the text before the first slash and the text after it, or nothing and the whole text.
func (k Key) Parts() (space, name string) { return k.space, k.name }

// String is the text.
func (k Key) String() string {
	if k.space == "" {
		return k.name
	}
	return k.space + "/" + k.name
}

// Is reports whether the key has a text.
func (k Key) Is(text string) bool { return k == KeyOf(text) }

// IsIn reports whether the text begins with prefix, whose only slash is its last character.
func (k Key) IsIn(prefix string) bool {
	return k.space != "" && k.space == prefix[:len(prefix)-1]
}

// checksum is FNV-1a of the text with a NUL for the slash: the same in every process.
func (k Key) checksum() uint64 {
	sum := uint64(14695981039346656037)
	for i := range len(k.space) {
		sum = (sum ^ uint64(k.space[i])) * 1099511628211
	}
	sum *= 1099511628211
	for i := range len(k.name) {
		sum = (sum ^ uint64(k.name[i])) * 1099511628211
	}
	return sum
}

// hash is keyed with a secret of the process: nobody can choose names whose hashes collide.
func (k Key) hash(seed maphash.Seed) uint32 {
	return hashOf(maphash.String(seed, k.name) + 3*maphash.String(seed, k.space))
}
