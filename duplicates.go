// Keys that a list has twice. Which of the two states counts, and how is the other one reported?

package cache

import (
	"fmt"
	"strings"

	"github.com/watchmirror/cache/internal/table"
)

// duplicateKeyError is reported when a list has two states under one key: two parts of a merged
// list had the object, it was created again between two pages, or two objects have one key.
type duplicateKeyError struct {
	key string
	// kept and dropped are the versions of the two states, empty where they are not decimal.
	kept, dropped string
}

func (e *duplicateKeyError) Error() string {
	return fmt.Sprintf("list has key %q twice: kept the state%s, dropped the one%s",
		e.key, atVersion(e.kept), atVersion(e.dropped))
}

func (*duplicateKeyError) cause() Cause { return causeDuplicateKey }

// duplicates has the keys that a list has twice and that are not reported yet.
type duplicates []*duplicateKeyError

// resolve decides between two states that a list has under one key, and records the dropped one. It
// returns true if the later one is kept. The newest decimal version is; without decimal versions it
// is the later state, as in client-go. One state that is listed twice is no duplicate key: nothing
// is lost.
func (d *duplicates) resolve(key table.Key, earlier, later table.Origin) (keepLater bool) {
	if later.Same(earlier) {
		return false
	}
	kept := later
	dropped := earlier
	if later.OlderThan(earlier) {
		kept = earlier
		dropped = later
	}
	if later != earlier || later.Version() == "" {
		*d = append(*d, &duplicateKeyError{
			key:     strings.Clone(key.String()), // it may share memory with the object
			kept:    kept.Version(),
			dropped: dropped.Version(),
		})
	}
	return !later.OlderThan(earlier)
}

// take returns the recorded duplicates and forgets them.
func (d *duplicates) take() duplicates {
	taken := *d
	*d = nil
	return taken
}

// duplicateFinder is a Replacement that finds the keys that a list has twice.
type duplicateFinder interface{ takeDuplicates() duplicates }
