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

// Each mutant applies to exactly one place of the file as it is now, and what comes
// of it is Go, and another program.
func TestEachMutantApplies(t *testing.T) {
	for _, m := range All() {
		_, err := m.mutate(moduleRoot)
		assert.NoError(t, err, m.Name)
	}
}

// Each mutant names a top-level test that is in its package.
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
		_, err := unneeded(files, m.Test)
		assert.NoError(t, err, m.Name)
	}
}

// Mutants are distinguished by their names, and by what they change.
func TestNoMutantIsThereTwice(t *testing.T) {
	slug := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	names, changes := map[string]bool{}, map[string]string{}
	for _, m := range All() {
		assert.Regexp(t, slug, m.Name)
		assert.False(t, names[m.Name], "%s is there twice", m.Name)
		names[m.Name] = true
		change := m.File + "\n" + m.From + "\n" + m.To
		if other, twice := changes[change]; twice {
			assert.Equal(t, other, m.Name, "they change the same")
		}
		changes[change] = m.Name
	}
}

// Every guarantee has two mutants at least, every fault one.
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
		assert.Contains(t, want, number, "there is no such number")
	}
}
