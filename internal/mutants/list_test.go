package mutants

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const moduleRoot = "../.."

// Each mutant applies to exactly one place of its file, and the result is a different valid
// program.
func TestEachMutantApplies(t *testing.T) {
	for _, m := range All() {
		_, err := m.mutate(moduleRoot)
		assert.NoError(t, err, m.Name)
	}
}

// Each mutant names a top-level test of its package.
func TestEachMutantsTestExists(t *testing.T) {
	packages := map[string][]*testFile{}
	for _, m := range All() {
		files, known := packages[m.pkg()]
		if !known {
			var err error
			files, err = testFilesOf(filepath.Join(moduleRoot, m.pkg()))
			require.NoError(t, err)
			packages[m.pkg()] = files
		}
		_, err := unneededFiles(files, m.Test)
		assert.NoError(t, err, m.Name)
	}
}

// Mutants have unique names and unique changes.
func TestMutantsAreUnique(t *testing.T) {
	slug := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	names, changes := map[string]bool{}, map[string]string{}
	for _, m := range All() {
		assert.Regexp(t, slug, m.Name)
		assert.False(t, names[m.Name], "%s occurs twice", m.Name)
		names[m.Name] = true
		change := m.File + "\n" + m.From + "\n" + m.To
		if other, twice := changes[change]; twice {
			assert.Equal(t, other, m.Name, "two mutants with the same change")
		}
		changes[change] = m.Name
	}
}

// Every guarantee has at least two mutants, every fault at least one.
func TestEveryGuaranteeAndFaultHasMutants(t *testing.T) {
	have := map[string]int{}
	for _, m := range All() {
		for _, number := range m.Guards {
			have[number]++
		}
	}
	want := map[string]int{}
	for i := 1; i <= 14; i++ {
		want[fmt.Sprintf("G%d", i)] = 2
	}
	for number := range firstOf(`(?m)^### (B\d+):`, read(t, "docs", "faults.md")) {
		want[number] = 1
	}
	for number, least := range want {
		assert.GreaterOrEqual(t, have[number], least, "mutants of %s", number)
	}
	for number := range have {
		assert.Contains(t, want, number, "no such guarantee or fault")
	}
}
