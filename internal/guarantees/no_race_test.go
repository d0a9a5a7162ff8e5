//go:build !race

package guarantees

const underRace = false
