package table

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
)

// Key is the key of an object: a text split at its first slash into a namespace and a name. A namespace is stored once
// for all keys that have it. Keys are comparable. A text without a slash, or that begins with one, is all name.
type Key struct{ namespace, name string }

// KeyOf returns the key for a text.
func KeyOf(text string) Key {
	if slash := strings.IndexByte(text, '/'); slash > 0 {
		return Key{text[:slash], text[slash+1:]}
	}
	return Key{name: text}
}

// NewKey returns the key whose text is namespace/name, or name if the namespace is empty.
func NewKey(namespace, name string) Key {
	switch {
	case namespace == "":
		return KeyOf(name)
	case strings.IndexByte(namespace, '/') >= 0:
		return KeyOf(namespace + "/" + name)
	}
	return Key{namespace, name}
}

// Parts returns the text before the first slash and the text after it, or "" and the whole text.
func (k Key) Parts() (namespace, name string) { return k.namespace, k.name }

// String returns the text.
func (k Key) String() string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}

// Is reports whether the key has this text.
func (k Key) Is(text string) bool { return k == KeyOf(text) }

// IsIn reports whether the text begins with prefix, whose only slash is its last character.
func (k Key) IsIn(prefix string) bool {
	return k.namespace != "" && k.namespace == prefix[:len(prefix)-1]
}

// checksum returns the checksum of the two parts of the text, the same in every process.
func (k Key) checksum() uint64 { return mix(mix(0, k.namespace), k.name) }

// mix mixes a text into a checksum, in words of 8 bytes, since single bytes would take several percent of an update's
// time. The last word has the remaining bytes after a 1, so that the length counts.
func mix(sum uint64, text string) uint64 {
	for ; len(text) >= 8; text = text[8:] {
		sum = mixWord(sum, binary.LittleEndian.Uint64([]byte(text[:8])))
	}
	rest := uint64(1)
	for i := range len(text) {
		rest = rest<<8 | uint64(text[i])
	}
	return mixWord(sum, rest)
}

// mixWord is bijective in each argument.
func mixWord(sum, word uint64) uint64 {
	sum = (sum ^ word) * 0x9e3779b97f4a7c15
	return sum ^ sum>>32
}

// hash uses a seed that is secret to the process, so that an attacker cannot choose names whose hashes collide.
func (k Key) hash(seed maphash.Seed) uint32 {
	return hashOf(maphash.String(seed, k.name) + 3*maphash.String(seed, k.namespace))
}
