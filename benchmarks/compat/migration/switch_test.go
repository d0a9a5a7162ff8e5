package migration

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	// The overlay imports it, which go mod tidy does not see.
	_ "k8s.io/client-go/tools/cache"
)

const (
	ours     = `"github.com/watchmirror/cache"`
	clientGo = `"k8s.io/client-go/tools/cache"`
)

// switched is the controller with the other import: the files of nodecount, of which one
// is different in one line. The go command takes an overlay for it, so nothing is copied.
func switched(t *testing.T) (overlay string) {
	t.Helper()
	files, err := filepath.Glob("nodecount/*.go")
	require.NoError(t, err)
	replaced := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), clientGo, file)
		if !bytes.Contains(text, []byte(ours)) {
			continue
		}
		assert.Equal(t, 1, bytes.Count(text, []byte("\n\t"+ours+"\n")), "%s imports it in a line of its own", file)
		original, err := filepath.Abs(file)
		require.NoError(t, err)
		other := filepath.Join(t.TempDir(), filepath.Base(file))
		require.NoError(t, os.WriteFile(other, bytes.Replace(text, []byte(ours), []byte(clientGo), 1), 0o600))
		replaced[original] = other
	}
	require.Len(t, replaced, 1, "one import in one file: %v", replaced)
	content, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay = filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(overlay, content, 0o600))
	return overlay
}

// goCommand runs the go command and returns what it printed.
func goCommand(t *testing.T, arguments ...string) string {
	t.Helper()
	began := time.Now()
	out, err := exec.CommandContext(t.Context(), "go", arguments...).CombinedOutput()
	require.NoError(t, err, "go %s:\n%s", strings.Join(arguments, " "), out)
	t.Logf("go %s: %v", strings.Join(arguments, " "), time.Since(began).Round(time.Millisecond))
	return string(out)
}

func TestTheControllerIsBuiltAndTestedOnBothPackages(t *testing.T) {
	overlay := switched(t)
	for _, side := range []struct {
		name, has, hasNot string
		arguments         []string
	}{
		{"ours", ours, clientGo, nil},
		{"client-go", clientGo, ours, []string{"-overlay=" + overlay}},
	} {
		t.Run(side.name, func(t *testing.T) {
			with := func(command string, more ...string) string {
				return goCommand(t, append(append([]string{command}, side.arguments...), more...)...)
			}
			imports := strings.Fields(with("list", "-f", `{{join .Imports "\n"}}`, "./nodecount"))
			assert.Contains(t, imports, strings.Trim(side.has, `"`))
			assert.NotContains(t, imports, strings.Trim(side.hasNot, `"`))
			with("build", "-o", os.DevNull, "./nodecount")
			printed := with("test", "-count=1", "-v", "./nodecount")
			assert.Equal(t, 7, strings.Count(printed, "    --- PASS: TestTheControllerCountsPodsPerNode/"), printed)
			assert.NotContains(t, printed, "--- SKIP")
		})
	}
}
