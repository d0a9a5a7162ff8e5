// Package tombstone lets package cachetest make a cache.DeletedFinalStateUnknown. It cannot import package cache, whose
// tests import it.
package tombstone

// maker is set when package cache is initialized, before any other code of the program.
var maker func(key string) any

// SetMaker sets the function that makes tombstones. Only package cache calls it, in its initialization.
func SetMaker(make func(key string) any) { maker = make }

// New returns a tombstone without a last state, nil in a program without package cache.
func New(key string) any {
	if maker == nil {
		return nil
	}
	return maker(key)
}
