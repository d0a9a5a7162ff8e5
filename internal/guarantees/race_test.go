//go:build race

package guarantees

// underRace is true where the race detector makes everything ten times as slow.
const underRace = true
