package mutants

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const moduleRoot = "../.."

// Each mutant has one place in its package, and the result is a different valid program.
func TestEachMutantApplies(t *testing.T) {
	for _, m := range locate(moduleRoot, All()) {
		assert.NoError(t, m.err)
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

// Mutants have unique names, unique changes, and a description.
func TestMutantsAreUniqueAndDescribed(t *testing.T) {
	slug := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	names := map[string]bool{}
	changes := map[string]string{}
	for _, m := range All() {
		assert.Regexp(t, slug, m.Name)
		assert.False(t, names[m.Name], "%s occurs twice", m.Name)
		names[m.Name] = true
		assert.NotEmpty(t, m.Guards, m.Name)
		assert.NotEmpty(t, m.Fault, m.Name)
		change := strings.Join([]string{m.Dir, m.In, m.From, strconv.Itoa(m.Nth), m.To}, "\n")
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
