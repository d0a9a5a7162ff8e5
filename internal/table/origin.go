package table

import (
	"hash/maphash"
	"strconv"
)

// Origin is the resource version and UID with which an object was received, before any transform, as numbers. The zero
// value has neither.
type Origin struct {
	// version is the version if it is a decimal number, else a hash of its text.
	version uint64
	// uid is a hash of the UID; its lowest bits say which fields are set.
	uid uint64
}

const (
	decimalVersion = 1 << iota
	otherVersion
	hasUID
	originBits = 1<<iota - 1
)

// originSeed seeds the hashes of UIDs and of versions that are not numbers.
var originSeed = maphash.MakeSeed()

// OriginOf returns the origin of an object with a version and a UID, either of which may be empty. A version is decimal
// if it has only digits, does not begin with 0, as in apimachinery's resourceversion package, and fits into 64 bits.
func OriginOf(version, uid string) (o Origin) {
	if uid != "" {
		o.uid = maphash.String(originSeed, uid)&^originBits | hasUID
	}
	if version == "" {
		return o
	}
	if version[0] >= '1' && version[0] <= '9' {
		if number, err := strconv.ParseUint(version, 10, 64); err == nil {
			return Origin{number, o.uid | decimalVersion}
		}
	}
	return Origin{maphash.String(originSeed, version), o.uid | otherVersion}
}

// Same reports whether both are of one state of one object: UID and version are equal, and neither is empty.
func (o Origin) Same(as Origin) bool {
	return o.uid&hasUID != 0 && o.uid&(decimalVersion|otherVersion) != 0 && o == as
}

// OlderThan reports whether both versions are decimal and o's is lower.
func (o Origin) OlderThan(other Origin) bool {
	return o.uid&other.uid&decimalVersion != 0 && o.version < other.version
}

// Recreates reports whether both have a UID and these differ: the object was deleted and created again in between.
func (o Origin) Recreates(other Origin) bool {
	return o.uid&other.uid&hasUID != 0 && (o.uid^other.uid)&^originBits != 0
}

// checksum returns the checksum of an entry whose key has the checksum key. It is mix twice, so that the checksums of
// several entries do not cancel out.
func (o Origin) checksum(key uint64) uint64 { return mixWord(mixWord(key, o.version), key) }

// Version returns the version if it is decimal, else "".
func (o Origin) Version() string {
	if o.uid&decimalVersion == 0 {
		return ""
	}
	return strconv.FormatUint(o.version, 10)
}
