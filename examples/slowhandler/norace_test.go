//go:build !race

package main

const manyUpdates = 500_000
