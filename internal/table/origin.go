package table

import (
	"hash/maphash"
	"strconv"
)

// Origin is what a source said of an object when it was received, before any transform saw it:
// its resource version and its UID, each as a number. It is kept with the object, so that nobody
// has to read a stored object to know what it once was. The zero value is that of an object that
// said neither.
type Origin struct {
	// version is the version itself if it is a decimal number, else a hash of its text.
	version uint64
	// uid is a hash of the UID, but for its lowest bits: they say what there is.
	uid uint64
}

const (
	decimalVersion = 1 << iota
	otherVersion
	hasUID
	originBits = 1<<iota - 1
)

// originSeed keys the hashes of UIDs and of versions that are no numbers.
var originSeed = maphash.MakeSeed()

// OriginOf is the origin of an object with a version and a UID, either of which may be empty.
func OriginOf(version, uid string) Origin {
	var o Origin
	if uid != "" {
		o.uid = maphash.String(originSeed, uid)&^originBits | hasUID
	}
	if version == "" {
		return o
	}
	if number, ok := decimal(version); ok {
		return Origin{number, o.uid | decimalVersion}
	}
	return Origin{maphash.String(originSeed, version), o.uid | otherVersion}
}

// decimal is the number of a version that is one, as apimachinery's resourceversion has it: no
// sign and no leading zeros. One beyond 64 bits is none.
func decimal(version string) (number uint64, ok bool) {
	if len(version) > 20 || version[0] < '1' || version[0] > '9' {
		return 0, false
	}
	for i := range len(version) {
		digit := uint64(version[i] - '0')
		if digit > 9 || number > (1<<64-1-digit)/10 {
			return 0, false
		}
		number = number*10 + digit
	}
	return number, true
}

// Same says whether both are of one state of one object: neither leaves out the version or the
// UID.
func (o Origin) Same(as Origin) bool {
	return o.uid&hasUID != 0 && o.uid&(decimalVersion|otherVersion) != 0 && o == as
}

// OlderThan says whether both versions are numbers, and o's is the lower one.
func (o Origin) OlderThan(other Origin) bool {
	return o.uid&other.uid&decimalVersion != 0 && o.version < other.version
}

// Recreates says whether it is of another object than the one that had the same key: both have a
// UID.
func (o Origin) Recreates(other Origin) bool {
	return o.uid&other.uid&hasUID != 0 && (o.uid^other.uid)&^originBits != 0
}

// Version is the version if it is a number, else empty.
func (o Origin) Version() string {
	if o.uid&decimalVersion == 0 {
		return ""
	}
	return strconv.FormatUint(o.version, 10)
}

// origins are those of the cells, by number. They are the writer's.
type origins []Origin

func (o *origins) set(number uint32, origin Origin) {
	for uint32(len(*o)) <= number {
		*o = append(*o, Origin{})
	}
	(*o)[number] = origin
}

// SetOrigin keeps the origin of the object in a cell.
func (w *Write) SetOrigin(number uint32, origin Origin) { w.origins.set(number, origin) }

// Origin is that of the object in a cell. The caller is the one who may write.
func (t *Table) Origin(number uint32) Origin {
	if int(number) >= len(t.origins) {
		return Origin{}
	}
	return t.origins[number]
}
