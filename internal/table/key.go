package table

import (
	"hash/maphash"
	"strings"
)

// Key is the key of an object: a text split at its first slash. The part before the slash, usually a namespace, is
// stored once for all keys that share it. Keys are comparable. A text without a slash, or that begins with one, is all
// name.
type Key struct{ space, name string }

// KeyOf returns the key for a text.
func KeyOf(text string) Key {
	if slash := strings.IndexByte(text, '/'); slash > 0 {
		return Key{text[:slash], text[slash+1:]}
	}
	return Key{name: text}
}

// Named returns the key whose text is namespace/name, or name if the namespace is empty.
func Named(namespace, name string) Key {
	switch {
	case namespace == "":
		return KeyOf(name)
	case strings.IndexByte(namespace, '/') >= 0:
		return KeyOf(namespace + "/" + name)
	}
	return Key{namespace, name}
}

// Parts returns the text before the first slash and the text after it, or "" and the whole text.
func (k Key) Parts() (space, name string) { return k.space, k.name }

// String returns the text.
func (k Key) String() string {
	if k.space == "" {
		return k.name
	}
	return k.space + "/" + k.name
}

// Is reports whether the key has this text.
func (k Key) Is(text string) bool { return k == KeyOf(text) }

// IsIn reports whether the text begins with prefix, whose only slash is its last character.
func (k Key) IsIn(prefix string) bool {
	return k.space != "" && k.space == prefix[:len(prefix)-1]
}

// checksum returns the checksum of the two parts of the text, the same in every process.
func (k Key) checksum() uint64 { return mixed(mixed(0, k.space), k.name) }

// mixed mixes a text into sum, in words of 8 bytes. The last word has the remaining bytes after a 1, so that the length
// counts. Mixing byte by byte would take several percent of an update's time.
func mixed(sum uint64, text string) uint64 {
	for ; len(text) >= 8; text = text[8:] {
		sum = mixedWord(sum, uint64(text[0])|uint64(text[1])<<8|uint64(text[2])<<16|uint64(text[3])<<24|
			uint64(text[4])<<32|uint64(text[5])<<40|uint64(text[6])<<48|uint64(text[7])<<56)
	}
	rest := uint64(1)
	for i := range len(text) {
		rest = rest<<8 | uint64(text[i])
	}
	return mixedWord(sum, rest)
}

// mixedWord is bijective in each argument.
func mixedWord(sum, word uint64) uint64 {
	sum = (sum ^ word) * 0x9e3779b97f4a7c15
	return sum ^ sum>>32
}

// hash uses a seed that is secret to the process, so that an attacker cannot choose names whose hashes collide.
func (k Key) hash(seed maphash.Seed) uint32 {
	return hashOf(maphash.String(seed, k.name) + 3*maphash.String(seed, k.space))
}
