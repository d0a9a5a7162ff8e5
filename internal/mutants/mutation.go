package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

var (
	errNotOnce  = errors.New("the text to replace (From) must occur exactly once")
	errNoChange = errors.New("the mutant is the original")
	errUnparsed = errors.New("the mutant is no Go")
)

// mutation is a mutant applied to its file.
type mutation struct {
	// path is the path of the file, and line the first changed line.
	path string
	line int
	text []byte
}

// mutate applies the mutant to the module at root, in memory. It fails if the mutant is
// outdated: From no longer occurs exactly once.
func (m Mutant) mutate(root string) (mutation, error) {
	switch {
	case m.Name == "" || m.Test == "" || m.Fault == "" || len(m.Guards) == 0:
		return mutation{}, errors.New("the mutant is not described: it needs Name, Guards, Test and Fault")
	case strings.HasSuffix(m.File, "_test.go"):
		return mutation{}, errors.New("its file is a test: a mutant changes what is tested")
	}
	path := filepath.Join(root, filepath.FromSlash(m.File))
	original, err := os.ReadFile(path)
	if err != nil {
		return mutation{}, fmt.Errorf("read its file: %w", err)
	}
	if n := strings.Count(string(original), m.From); m.From == "" || n != 1 {
		return mutation{}, fmt.Errorf("%w in %s, and occurs %d times", errNotOnce, m.File, n)
	}
	text := []byte(strings.Replace(string(original), m.From, m.To, 1))
	before, err := normalized(original)
	if err != nil {
		return mutation{}, fmt.Errorf("%s: %w", m.File, err)
	}
	after, err := normalized(text)
	switch {
	case err != nil:
		return mutation{}, fmt.Errorf("%w: %w", errUnparsed, err)
	case bytes.Equal(before, after):
		return mutation{}, errNoChange
	}
	line := 1 + bytes.Count(original[:bytes.Index(original, []byte(m.From))], []byte("\n"))
	return mutation{path: path, line: line, text: text}, nil
}

// normalized returns a file formatted and without comments, so that files with equal code are
// equal.
func normalized(text []byte) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = format.Node(&out, files, parsed)
	return out.Bytes(), err
}
