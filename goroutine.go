package cache

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutineID is the number of the goroutine that calls it, as it stands at the top of
// its stack trace: "goroutine 42 [running]:". Go has no other way to tell whether a
// call comes from inside another one, and to wait for that would be for ever. 0 if it
// cannot be read; then nobody is recognized.
func goroutineID() uint64 {
	var buffer [64]byte
	fields := bytes.Fields(buffer[:runtime.Stack(buffer[:], false)])
	if len(fields) < 2 {
		return 0
	}
	id, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return id
}
