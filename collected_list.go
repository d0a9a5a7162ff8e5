// A list that arrives in parts and is written in one step, to a queue or to a store of another
// package. Which state of an object counts if the list has several?

package cache

import (
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// collectedList is a list of objects under their keys. The zero value is empty.
type collectedList[K comparable] struct {
	// all has nil for an object that was removed.
	all []any
	// places are the positions in all of the objects that have a key.
	places map[K]int
	// duplicates has the keys of which the list had several states.
	duplicates duplicates
}

// put adds an object, unless the list has a newer state of it. name is the key in reports.
func (l *collectedList[K]) put(key K, name table.Key, obj any) {
	at, isListed := l.places[key]
	if !isListed {
		if l.places == nil {
			l.places = map[K]int{}
		}
		l.places[key] = len(l.all)
		l.append(obj)
		return
	}
	earlier := originOf(receivedOf(l.all[at]))
	if l.duplicates.resolve(name, earlier, originOf(receivedOf(obj))) {
		l.all[at] = obj
	}
}

// append adds an object without a key.
func (l *collectedList[K]) append(obj any) { l.all = append(l.all, obj) }

// remove removes the object under a key, if there is one.
func (l *collectedList[K]) remove(key K) {
	at, isListed := l.places[key]
	if !isListed {
		return
	}
	l.all[at] = nil
	delete(l.places, key)
}

// objects returns the objects of the list, which must not be used any more.
func (l *collectedList[K]) objects() []any {
	return slices.DeleteFunc(l.all, func(obj any) bool { return obj == nil })
}
