package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// machine is where and with what the figures were made.
func machine() []string {
	return []string{
		fmt.Sprintf("%s/%s, %d cores, %s, %s, kernel %s", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0),
			processor(), memory(), kernel()),
		runtime.Version(),
		"client-go " + moduleVersion("k8s.io/client-go"),
		"this library " + revision(),
		time.Now().Format(time.DateOnly),
	}
}

// unknown is what the system does not tell in Linux' way.
const unknown = "unknown"

// processor is the model's name.
func processor() string {
	if name := inProc("/proc/cpuinfo", "model name"); name != unknown {
		return name
	}
	return "processor " + unknown
}

// memory is how much there is.
func memory() string {
	kib, err := strconv.Atoi(strings.TrimSuffix(inProc("/proc/meminfo", "MemTotal"), " kB"))
	if err != nil {
		return "memory " + unknown
	}
	return fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
}

// inProc is the value of a name in a file of lines with a colon.
func inProc(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer func() { _ = file.Close() }()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if found, value, _ := strings.Cut(scanner.Text(), ":"); strings.TrimSpace(found) == name {
			return strings.TrimSpace(value)
		}
	}
	return unknown
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(release))
}

func moduleVersion(path string) string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return unknown
}

// revision is the commit that is checked out, with a mark if there are changes.
func revision() string {
	output, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(output))
}
