// Package inspect gives package footprint what it needs of a store and what nobody else should use.
// Package cache cannot export it, and footprint cannot see what is not exported.
package inspect

import "github.com/watchmirror/cache/internal/table"

// View is what a reader shows at one point in time.
type View struct {
	// Version is the applied version.
	Version string
	// Len is the number of entries, Each iterates over them.
	Len  int
	Each func(yield func(table.Entry) bool)
	// TableBytes is the memory of the whole table, also if the view is a part of it.
	TableBytes int64
}

// Open returns the view of a reader, informer or store of package cache, or false for anything
// else. Package cache sets it when it is initialized.
var Open func(reader any) (View, bool)
