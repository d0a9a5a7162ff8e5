package guarantees

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"
)

var showLogs = flag.Bool("logs", false, "print the log lines of the library")

// TestMain discards the log lines of scripted failures: they would bury a failed assertion.
func TestMain(m *testing.M) {
	flag.Parse()
	if !*showLogs {
		klog.SetLogger(klog.Logger{})
	}
	os.Exit(m.Run())
}
