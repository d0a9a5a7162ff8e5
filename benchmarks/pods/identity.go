package pods

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// instances is how many container IDs a pod has: of each of its two containers the one
// that runs and the one before.
const instances = 4

// identity has the fields that differ among pods of one shape. Each text has the same
// length in every pod: an encoded pod is made of an encoded template by writing over them.
type identity struct {
	texts          map[string]string
	created, ready time.Time
}

// epoch is when the first pod was created. Its seconds take five bytes in protobuf.
var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// suffixAlphabet is what Kubernetes makes random suffixes of.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// identityOf is that of pod i.
func identityOf(i int, version uint64) identity {
	random := noise(uint64(i))
	created := epoch.Add(time.Duration(i) * time.Second)
	id := identity{
		texts: map[string]string{
			"namespace": Namespace(i),
			"suffix":    suffix(i),
			"uid":       random.uid(),
			"version":   Version(version),
			"node":      fmt.Sprintf("worker-%06d.eu-central-1.compute.internal", i/50),
			"hostIP":    address(10, uint64(i/50)),
			"podIP":     address(172, uint64(i)),
		},
		created: created,
		ready:   created.Add(11 * time.Second),
	}
	for c := range instances {
		id.texts[containerName(c)] = random.hex(32)
	}
	return id
}

// placeholder is the identity of the templates. Each of its texts and times occurs in a pod only
// where it was put.
func placeholder() identity {
	const unused = 14_348_906 // no measurement has so many pods
	return identityOf(unused, unused)
}

func containerName(c int) string { return fmt.Sprintf("container%d", c) }

// Namespace is that of pod i.
func Namespace(i int) string { return fmt.Sprintf("team-%05d", i/PerNamespace) }

// Version is a resource version as text. All have ten digits.
func Version(version uint64) string { return fmt.Sprintf("%010d", 4_000_000_000+version) }

func suffix(i int) string {
	var text [5]byte
	for at := range text {
		text[at] = suffixAlphabet[i%len(suffixAlphabet)]
		i /= len(suffixAlphabet)
	}
	return string(text[:])
}

// address has three digits in each part but the first: it is as long for every n.
func address(first int, n uint64) string {
	return fmt.Sprintf("%d.%d.%d.%d", first, 100+n/10_000%100, 100+n/100%100, 100+n%100)
}

// noise is a sequence of numbers that looks random and is the same in every run
// (splitmix64).
type noise uint64

func (n *noise) next() uint64 {
	*n += 0x9e3779b97f4a7c15
	z := uint64(*n)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hex is so many bytes in hexadecimal digits.
func (n *noise) hex(bytes int) string {
	raw := make([]byte, bytes)
	for at := range raw {
		raw[at] = byte(n.next())
	}
	return hex.EncodeToString(raw)
}

func (n *noise) uid() string {
	digits := n.hex(16)
	return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
}
