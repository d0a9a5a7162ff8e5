package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine is where and with what the figures were made.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s; %s; client-go %s; this library %s; %s",
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), processor(), runtime.Version(),
		moduleVersion("k8s.io/client-go"), revision(), time.Now().Format(time.DateOnly))
}

var modelName = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// processor is the model's name, where the system tells it in Linux' way.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	found := modelName.FindSubmatch(text)
	if err != nil || found == nil {
		return "unknown processor"
	}
	return string(found[1])
}

func moduleVersion(path string) string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "unknown"
}

// revision is the commit that is checked out, with a mark if there are changes.
func revision() string {
	output, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(output))
}
