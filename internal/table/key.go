package table

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"
	"unique"
)

// Key is the key of an object: a text split at its first slash into a namespace and a name. A
// namespace is stored once for all keys that have it. Keys are comparable. A text without a slash,
// or that begins with one, is all name.
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
func (k Key) Parts() (namespace, name string) {
	return k.namespace, k.name
}

// String returns the text.
func (k Key) String() string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}

// Is reports whether the key has this text.
func (k Key) Is(text string) bool {
	return k == KeyOf(text)
}

// IsIn reports whether the text begins with prefix, whose only slash is its last character.
func (k Key) IsIn(prefix string) bool {
	return k.namespace != "" && k.namespace == prefix[:len(prefix)-1]
}

// mix mixes a text into a checksum, in words of 8 bytes, since single bytes would take several
// percent of an update's time. The last word has the remaining bytes after a 1, so that the length
// counts.
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

// textBuffer has room for the texts of nearly all keys.
type textBuffer [128]byte

// appendTo appends the text.
func (k Key) appendTo(buffer []byte) []byte {
	if k.namespace != "" {
		buffer = append(buffer, k.namespace...)
		buffer = append(buffer, '/')
	}
	return append(buffer, k.name...)
}

// hash returns the hash of the text. It uses a seed that is secret to the process, so that an
// attacker cannot choose names whose hashes collide.
func (k Key) hash(seed maphash.Seed) uint32 {
	var buffer textBuffer
	return hashText(seed, viewText(k.appendTo(buffer[:0])))
}

// hashText returns the hash of the key with a text.
func hashText(seed maphash.Seed, text string) uint32 {
	return hashOf(maphash.String(seed, text))
}

// Origin is the resource version and UID with which an object was received, before any transform.
// The zero value has neither.
type Origin struct {
	packedOrigin
	// long is the text of a decimal version that does not fit into 64 bits.
	long longText
}

// longText is the text of a long version. The zero value is none.
type longText = unique.Handle[string]

// packedOrigin is an origin without the text of a long version. The box of a cell has that.
type packedOrigin struct {
	// version is the version if it is a decimal number of 64 bits, else a hash of its text.
	version uint64
	// uid is a hash of the UID; its lowest bits say which fields are set.
	uid uint64
}

const (
	decimalVersion = 1 << iota
	longVersion
	otherVersion
	hasUID
	originBits = 1<<iota - 1
	anyVersion = decimalVersion | longVersion | otherVersion
)

// OriginOf returns the origin of an object with a version and a UID, either of which may be empty.
// A version is decimal if it has only digits and does not begin with 0, as in apimachinery's
// resourceversion package.
func OriginOf(version, uid string) (o Origin) {
	if uid != "" {
		o.uid = mix(0, uid)&^originBits | hasUID
	}
	if version == "" {
		return o
	}
	number, fits := parseVersion(version)
	switch {
	case fits:
		o.version = number
		o.uid |= decimalVersion
	case isDecimal(version):
		o.version = mix(0, version)
		o.uid |= longVersion
		o.long = unique.Make(version)
	default:
		o.version = mix(0, version)
		o.uid |= otherVersion
	}
	return o
}

func isDecimal(version string) bool {
	if version[0] == '0' {
		return false
	}
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return false
		}
	}
	return true
}

// maxDigits is the number of digits that always fit into 64 bits.
const maxDigits = 19

// parseVersion returns a decimal version that fits into 64 bits. It handles the usual length
// itself: versions of every change are parsed.
func parseVersion(version string) (number uint64, fits bool) {
	if version[0] < '1' || version[0] > '9' {
		return 0, false
	}
	if len(version) > maxDigits {
		number, err := strconv.ParseUint(version, 10, 64)
		return number, err == nil
	}
	for i := range len(version) {
		digit := version[i] - '0'
		if digit > 9 {
			return 0, false
		}
		number = number*10 + uint64(digit)
	}
	return number, true
}

// Same reports whether both are of one state of one object: UID and version are equal, and neither
// is empty.
func (o Origin) Same(as Origin) bool {
	return o.uid&hasUID != 0 && o.uid&anyVersion != 0 && o == as
}

// OlderThan reports whether both versions are decimal and o's is lower.
func (o Origin) OlderThan(other Origin) bool {
	if o.uid&other.uid&decimalVersion != 0 {
		return o.version < other.version
	}
	return o.isOlderThanLong(other)
}

// isOlderThanLong is OlderThan if a version may be long. A long one is higher than one of 64 bits.
func (o Origin) isOlderThanLong(other Origin) bool {
	if other.uid&longVersion == 0 || o.uid&(decimalVersion|longVersion) == 0 {
		return false
	}
	if o.uid&decimalVersion != 0 {
		return true
	}
	version := o.long.Value()
	than := other.long.Value()
	if len(version) != len(than) {
		return len(version) < len(than)
	}
	return version < than
}

// Recreates reports whether both have a UID and these differ: the object was deleted and created
// again in between.
func (o Origin) Recreates(other Origin) bool {
	return o.uid&other.uid&hasUID != 0 && (o.uid^other.uid)&^originBits != 0
}

// checksum returns a checksum of the key, the same in every process.
func (k Key) checksum() uint64 {
	return mix(mix(0, k.namespace), k.name)
}

// checksum returns the checksum of an entry, the same in every process. It mixes the key's checksum
// twice, so that the checksums of several entries do not cancel out.
func (o packedOrigin) checksum(key uint64) uint64 {
	return mixWord(mixWord(key, o.version), key)
}

// Version returns the version if it is decimal, else "".
func (o Origin) Version() string {
	switch {
	case o.uid&decimalVersion != 0:
		return strconv.FormatUint(o.version, 10)
	case o.uid&longVersion != 0:
		return o.long.Value()
	}
	return ""
}
