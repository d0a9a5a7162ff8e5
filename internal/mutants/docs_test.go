package mutants

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests compare the tables of docs/testing.md, which list the tests, mutants and checks of
// the simulation for each promise, with the code.

// promise is one row of the tables.
type promise struct {
	number string
	// tests, mutants and simulation are the cells of these columns.
	tests, mutants, simulation string
}

var (
	row = regexp.MustCompile(`(?m)^\| ([GB]\d+) \| ([^|]+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$`)
	// named matches code in a cell.
	named = regexp.MustCompile("`([^`]+)`")
	tag   = regexp.MustCompile(`^[GB]\d+$`)
)

func names(cell string) (all []string) {
	for _, found := range named.FindAllStringSubmatch(cell, -1) {
		all = append(all, found[1])
	}
	return all
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{moduleRoot}, path...)...))
	require.NoError(t, err)
	return string(text)
}

func promises(t *testing.T) (all []promise) {
	t.Helper()
	for _, found := range row.FindAllStringSubmatch(read(t, "docs", "testing.md"), -1) {
		all = append(all, promise{found[1], found[3], found[4], found[5]})
	}
	return all
}

// sources returns the concatenated texts of the files under dir for which wanted is true.
func sources(t *testing.T, dir string, wanted func(name string) bool) string {
	t.Helper()
	var all strings.Builder
	visit := func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".git"):
			return fs.SkipDir
		case entry.IsDir() || !wanted(entry.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}
	require.NoError(t, filepath.WalkDir(filepath.Join(moduleRoot, dir), visit))
	return all.String()
}

// sourcesEndingIn returns the concatenated texts of all files whose names have an ending.
func sourcesEndingIn(t *testing.T, ending string) string {
	t.Helper()
	return sources(t, ".", func(name string) bool { return strings.HasSuffix(name, ending) })
}

// firstOf returns the set of first groups of a pattern's matches.
func firstOf(pattern, text string) map[string]bool {
	set := map[string]bool{}
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		set[found[1]] = true
	}
	return set
}

// The tables have each guarantee of doc.go and each fault of docs/faults.md once.
func TestTheTablesHaveARowForEachGuaranteeAndFault(t *testing.T) {
	want := firstOf(`(?m)^//\t(G\d+) `, read(t, "doc.go"))
	for number := range firstOf(`(?m)^### (B\d+):`, read(t, "docs", "faults.md")) {
		want[number] = true
	}
	require.GreaterOrEqual(t, len(want), 14+26)
	have := map[string]bool{}
	for _, p := range promises(t) {
		assert.False(t, have[p.number], "%s is there twice", p.number)
		have[p.number] = true
	}
	require.Equal(t, want, have)
}

// Each row names existing tests; a name that ends in * is a prefix.
func TestTheTablesNameTestsThatExist(t *testing.T) {
	have := firstOf(`(?m)^func (Test\w+)\(`, sourcesEndingIn(t, "_test.go"))
	for _, p := range promises(t) {
		tests := names(p.tests)
		assert.NotEmpty(t, tests, p.number)
		for _, test := range tests {
			beginning, many := strings.CutSuffix(test, "*")
			exists := have[test]
			for name := range have {
				exists = exists || many && strings.HasPrefix(name, beginning)
			}
			assert.True(t, exists, "%s: there is no %s", p.number, test)
		}
	}
}

// numbered matches numbered tests and their numbers.
var numbered = regexp.MustCompile(`(?m)^func Test([GB])(\d+)[A-Z]\w*\(`)

// Each promise has numbered tests, in files of internal/guarantees that begin with its number; the
// root package has none.
func TestEachPromiseHasItsFileOfNumberedTests(t *testing.T) {
	have := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(moduleRoot, "internal", "guarantees", "*_test.go"))
	require.NoError(t, err)
	for _, path := range files {
		file := filepath.Base(path)
		text := read(t, "internal", "guarantees", file)
		for _, found := range numbered.FindAllStringSubmatch(text, -1) {
			number, err := strconv.Atoi(found[2])
			require.NoError(t, err)
			begins := fmt.Sprintf("%s%02d_", strings.ToLower(found[1]), number)
			assert.True(t, strings.HasPrefix(file, begins),
				"%s has %s, which belongs into %s*_test.go", file, found[0], begins)
			have[found[1]+found[2]] = true
		}
	}
	for _, p := range promises(t) {
		assert.True(t, have[p.number], "internal/guarantees has no test of %s", p.number)
	}
	files, err = filepath.Glob(filepath.Join(moduleRoot, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		file := filepath.Base(path)
		assert.NotRegexp(t, numbered, read(t, file), file)
	}
}

// Each row names exactly the mutants that guard its number.
func TestTheTablesNameEachMutantInTheRowsThatItGuards(t *testing.T) {
	want := map[string][]string{}
	for _, m := range All() {
		for _, number := range m.Guards {
			want[number] = append(want[number], m.Name)
		}
	}
	for _, p := range promises(t) {
		have := names(p.mutants)
		slices.Sort(have)
		slices.Sort(want[p.number])
		assert.Equal(t, want[p.number], have, p.number)
	}
}

// Each row names functions and steps of the simulation that check it, and the numbers with which
// failures begin, or says that the simulation does not check it.
func TestTheTablesNameChecksOfTheSimulation(t *testing.T) {
	text := sources(t, "internal/simulation", func(name string) bool {
		return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && name != "doc.go"
	})
	functions := firstOf(`(?m)^func (?:\([^)]*\) )?(\w+)\(`, text)
	steps := firstOf(`(?m)^\t"([a-z-]+)": +(?:func|overHTTP|\()`, text)
	tags := map[string]bool{}
	for found := range firstOf(`[Ff]ail\("((?:%s: )?[GB]\d+(?:, G\d+)*): `, text) {
		for number := range firstOf(`([GB]\d+)`, found) {
			tags[number] = true
		}
	}
	require.NotEmpty(t, steps)
	for _, p := range promises(t) {
		checks := names(p.simulation)
		unseen := strings.HasPrefix(p.simulation, "not seen: ")
		assert.Equal(t, unseen, len(checks) == 0, "%s: %s", p.number, p.simulation)
		for _, check := range checks {
			exists := functions[check] || steps[check]
			if tag.MatchString(check) {
				exists = tags[check]
			}
			assert.True(t, exists, "%s: the simulation has no %s", p.number, check)
		}
	}
	// Conversely, each number with which a failure may begin is in the tables.
	said := map[string]bool{}
	for _, p := range promises(t) {
		for _, check := range names(p.simulation) {
			said[check] = true
		}
	}
	for number := range tags {
		assert.True(t, said[number], "the simulation checks %s, and no row says so", number)
	}
}

// goBlock matches Go code in a document.
var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// All lines of the code are consecutive in a source file, with any indentation, so that it is
// compiled and mostly run.
func TestTheDocumentsShowCodeOfThisRepository(t *testing.T) {
	unindented := regexp.MustCompile(`(?m)^[ \t]+`)
	all := unindented.ReplaceAllString(sourcesEndingIn(t, ".go"), "")
	shown := goBlock.FindAllStringSubmatch(sourcesEndingIn(t, ".md"), -1)
	require.GreaterOrEqual(t, len(shown), 12)
	for _, block := range shown {
		code := "\n" + unindented.ReplaceAllString(block[1], "")
		assert.True(t, strings.Contains(all, code), "no source file has:\n%s", block[1])
	}
}
