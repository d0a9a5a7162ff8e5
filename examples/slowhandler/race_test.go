//go:build race

package main

// The race detector makes an update ten times as slow, and the bound is the same for
// fewer of them.
const manyUpdates = 50_000
