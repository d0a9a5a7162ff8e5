package simulation

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/simulation/script"
)

var (
	seedsFlag = flag.Int("seeds", 100, "how many seeds to run")
	fromFlag  = flag.Uint64("from", 0, "the first seed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Handlers panic on purpose: nobody wants to read of it.
	utilruntime.PanicHandlers = nil
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

func TestMirrorsEqualTheSourceWhateverHappens(t *testing.T) {
	for seed := *fromFlag; seed < *fromFlag+uint64(*seedsFlag); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			result := Run(t, script.Generate(seed))
			if len(result.Failures) > 0 {
				trace := result.Trace
				t.Errorf("%s\n\n%s",
					strings.Join(result.Failures, "\n"), strings.Join(trace[max(0, len(trace)-30000):], "\n"))
			}
		})
	}
}
