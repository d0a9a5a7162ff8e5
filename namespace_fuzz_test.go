package cache

import (
	"math/rand/v2"
	"testing"
)

// FuzzViewsAgainstMaps runs a script against a store with views of its namespaces and,
// beside it, against maps. See namespacesModel, of whose choices each is one byte of the
// script: of n things the byte b chooses the one at b*n/256, or at b modulo n if n is a
// power of two.
func FuzzViewsAgainstMaps(f *testing.F) {
	f.Add([]byte("\x00\x80\x30\x10\x90\xf0\x55\xaa\x20\x40\x60\x81\xa1\xc1\xe1\x02\x03\x04"))
	f.Add([]byte{0, 200, 0, 120, 240, 3, 90, 7, 30, 1, 220, 80, 0, 100, 5, 66, 255, 254, 31, 0, 10, 20, 30, 40, 50, 60, 70, 1, 2, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 600 {
			return
		}
		m := newNamespacesModel(t, 0)
		choices := &byteSource{script: script}
		m.random = rand.New(choices)
		for len(choices.script) > 0 {
			m.parts[m.random.IntN(len(m.parts))].step()
			m.compare()
		}
	})
}

// byteSource is a source of numbers each of which is a byte of a script.
type byteSource struct{ script []byte }

// Uint64 has the byte at both ends, because a rand.Rand looks at one or the other. The
// bits between keep it from taking a number for one that would make some choices likelier,
// and asking for another one.
func (s *byteSource) Uint64() uint64 {
	b := byte(0)
	if len(s.script) > 0 {
		b, s.script = s.script[0], s.script[1:]
	}
	return uint64(b)<<56 | 0x55_5555_5555_5500 | uint64(b)
}
