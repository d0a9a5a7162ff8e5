package table

// The spaces of keys, each with a number: what stands before the slash, of which there is one
// text for all keys that begin with it.

// spaceOf is the number of what a key begins with, which gets one more key.
func (w *Write) spaceOf(key Key) uint32 {
	if !key.spaced {
		return 0
	}
	number, known := w.spaces[key.space]
	if !known {
		if len(w.s.spaces) >= w.mostSpaces {
			return noSpace
		}
		number = uint32(len(w.s.spaces))
		space := ownSpace(key.space) // it may be part of an object, which it would keep
		w.spaces[space] = number
		w.used = append(w.used, 0)
		w.reshape(func(s *state) { s.spaces = append(s.spaces, space) })
	} else if w.used[number] == 0 {
		w.unused--
	}
	w.used[number]++
	return number
}

func (w *Write) leaveSpace(number uint32) {
	if number == 0 || number == noSpace {
		return
	}
	if w.used[number]--; w.used[number] == 0 {
		w.unused++
	}
}
