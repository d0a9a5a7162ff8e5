package integration

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The quickstart as a user builds and runs it, while objects change.
func TestTheQuickstartMirrorsARealServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, "quickstart")
	r.create(t, 0, 30)
	program := filepath.Join(t.TempDir(), "quickstart")
	build := exec.Command("go", "build", "-o", program, "./examples/quickstart")
	build.Dir = ".."
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	stop := r.churn(t, 40, 5*time.Millisecond)
	time.AfterFunc(2*time.Second, stop)

	config := r.cluster.Config()
	output, err = exec.CommandContext(within(t, patience), program, "-server", config.Host, "-ca", config.CAFile, "-for", "3s", "-namespace", r.namespace,
		"-resource", r.resource.Group+"/"+r.resource.Version+"/"+r.resource.Resource).CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "synced: ")
	require.Contains(t, string(output), "the mirror equals the source")
}
