package statuspage

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// program describes the running program, so that pages of several replicas can be distinguished.
type program struct {
	Name    string    `json:"name"`
	Host    string    `json:"host,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
}

// started is about when the program has started: packages are initialized then.
var started = time.Now().UTC()

func thisProgram() program {
	host, _ := os.Hostname() // shown if it is known
	return program{
		Name:    filepath.Base(os.Args[0]),
		Host:    host,
		Version: programVersion(),
		Started: started,
	}
}

// programVersion is the version of the main module, or the commit of which it was built.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if version := info.Main.Version; version != "" && version != "(devel)" {
		return version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value[:min(len(setting.Value), 12)]
		}
	}
	return ""
}

// Title is the program and its host.
func (p program) Title() string {
	if p.Host == "" {
		return p.Name
	}
	return p.Name + " on " + p.Host
}
