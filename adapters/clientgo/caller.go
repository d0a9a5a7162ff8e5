package clientgo

import (
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"strings"
)

// callerOutside is file:line, with the file's folder, of the nearest caller that is not in
// this package. A reflector that is not given a name takes that of whoever made it, and
// would else be called after this package, with every other.
func callerOutside() string {
	const ours = "github.com/watchmirror/cache/adapters/clientgo."
	pcs := make([]uintptr, 16) // the few calls in between are all ours
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, ours) && frame.File != "" {
			folder, file := filepath.Split(frame.File)
			return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(folder), file), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
