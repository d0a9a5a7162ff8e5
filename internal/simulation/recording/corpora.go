package recording

import (
	"flag"
	"testing"
)

// Corpora is the directory of recordings that the flag -corpora names. The test that writes
// the corpora of a package's fuzz targets begins with Runs and ends with Write.
type Corpora struct{ dir *string }

// CorporaFlag defines the flag, for a variable of a test's package.
func CorporaFlag() Corpora {
	return Corpora{flag.String("corpora", "", "the directory of recordings to make corpora of")}
}

// Runs are the recordings. Without the flag it skips the test, which is none but the second
// half of making corpora.
func (c Corpora) Runs(t testing.TB) [][]Line {
	t.Helper()
	if *c.dir == "" {
		t.Skip("no -corpora")
	}
	runs, err := ReadDir(*c.dir)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// Write is WriteCorpus for the package that the test is of.
func (c Corpora) Write(t testing.TB, target string, inputs []Input) {
	t.Helper()
	n, err := WriteCorpus(".", target, inputs)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d of %d inputs", target, n, len(inputs))
}
