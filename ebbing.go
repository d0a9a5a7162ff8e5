package cache

import "maps"

// ebbing is a map that gives memory back when most of what it had is gone, which a map of
// its own accord never does. Who has removed something calls ebb, when there is
// time to copy what is left. The zero value is ready.
type ebbing[V any] struct {
	all map[string]V
	// peak is the most that there were since the map was made.
	peak int
}

// worthEbbing is from how many on it is worth the work to give memory back.
const worthEbbing = 1024

func (e *ebbing[V]) put(key string, value V) {
	if e.all == nil {
		e.all = map[string]V{}
	}
	e.all[key] = value
	e.peak = max(e.peak, len(e.all))
}

// ebb gives back the memory of what is gone, if that is three quarters: then those have paid
// for the copy of the rest.
func (e *ebbing[V]) ebb() {
	left := len(e.all)
	switch {
	case left == 0:
		*e = ebbing[V]{}
	case e.peak > worthEbbing && left < e.peak/4:
		all := make(map[string]V, left)
		maps.Copy(all, e.all)
		e.all, e.peak = all, left
	}
}
