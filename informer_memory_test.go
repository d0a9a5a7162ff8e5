package cache

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// raceDetected says whether the race detector is built in: its memory, and what it keeps
// alive, would be measured with what is measured.
func raceDetected() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// heap is how many bytes are alive.
func heap() int64 {
	// Twice: what has a finalizer or a cleanup goes with the second.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// kibiObject is an object of about 1 KiB.
func kibiObject(name string, version int) *object {
	o := podAt("a", name, itoa(version))
	o.Annotations = map[string]string{"content": strings.Repeat("x", 1000)}
	return o
}
