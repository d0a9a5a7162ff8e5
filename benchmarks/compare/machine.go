package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine is where and with what the figures were made.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s; %s; client-go %s; %s",
		runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), processor(), runtime.Version(),
		moduleVersion("k8s.io/client-go"), time.Now().Format(time.DateOnly))
}

// processor is the model's name, where the system tells it in Linux' way.
func processor() string {
	const unknown = "processor unknown"
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if name, value, _ := strings.Cut(scanner.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
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
