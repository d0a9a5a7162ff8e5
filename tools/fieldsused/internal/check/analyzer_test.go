package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	// The packages under testdata import it; go mod tidy does not see them there.
	_ "github.com/watchmirror/cache/kubeapi"
)

var (
	wantComment = regexp.MustCompile(`// want "(.*)"`)
	diagnostic  = regexp.MustCompile(`^(?:vet: )?(\S+\.go:\d+):\d+: (.*)$`)
)

func TestGoVetReportsReadsOfFieldsThatAreNotKept(t *testing.T) {
	requireReports(t, "checked/*", "./testdata/checked/...")
}

func TestGoVetReportsEscapesAndNoUnknownFieldsIfItIsAskedTo(t *testing.T) {
	flags := []string{"-fieldscheck.escapes", "-fieldscheck.nounknown"}
	requireReports(t, "escaping", append(flags, "./testdata/escaping")...)
}

// requireReports runs go vet, which must report what comments in a folder of testdata name.
func requireReports(t *testing.T, folder string, args ...string) {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "fieldscheck")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	command := exec.Command("go", "build", "-o", tool, "./fieldscheck")
	command.Dir = root
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))

	command = exec.Command("go", append([]string{"vet", "-vettool=" + tool}, args...)...)
	command.Dir = root
	output, err = command.CombinedOutput()
	require.Error(t, err, "there are reports")
	reported := map[string]string{}
	for _, line := range strings.Split(string(output), "\n") {
		if found := diagnostic.FindStringSubmatch(line); found != nil {
			reported[found[1]] = found[2]
		}
	}
	for place, want := range wanted(t, root, folder) {
		require.Contains(t, reported[place], want, "%s in:\n%s", place, output)
		delete(reported, place)
	}
	require.Empty(t, reported)
}

// wanted returns the texts that comments of the checked packages name, by place.
func wanted(t *testing.T, root, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "testdata", folder, "*.go"))
	require.NoError(t, err)
	want := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		relative, err := filepath.Rel(root, file)
		require.NoError(t, err)
		for n, line := range strings.Split(string(content), "\n") {
			if comment := wantComment.FindStringSubmatch(line); comment != nil {
				want[fmt.Sprintf("%s:%d", relative, n+1)] = comment[1]
			}
		}
	}
	require.NotEmpty(t, want)
	return want
}
