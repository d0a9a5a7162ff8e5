package mutants

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mutants that change the body of one function are built together, once for each package of
// tests, because building them one by one takes most of the time. Each is a copy of its function;
// the original begins by calling the copy that the environment variable names. All other mutants
// are built one by one.

// chosenVariable is the environment variable that selects a mutant by its number in the list,
// from 1.
const chosenVariable = "MUTANT"

// chooser is the text of a file that is added to each package with copies.
const chooser = `package %s

import "os"

var mutantInUse = os.Getenv(%q)
`

// compileError matches the positions of compile errors in the files that writeTogether wrote.
var compileError = regexp.MustCompile(`(together[0-9]+\.go):([0-9]+)`)

// buildTogether calls build with an overlay of all mutants that can be built together, and
// returns their numbers. Mutants that do not compile are omitted. If the build fails for another
// reason, nothing is built together.
func (s *session) buildTogether(
	ctx context.Context,
	build func(overlay string) (output []byte, err error),
) (included map[int]bool, err error) {
	omitted := map[int]bool{}
	for {
		overlay, copies, err := s.writeTogether(omitted)
		if err != nil {
			return nil, err
		}
		output, err := build(overlay)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return numbersOf(copies), nil
		}
		before := len(omitted)
		for _, number := range failedCopies(output, copies) {
			omitted[number] = true
		}
		if len(omitted) == before {
			return nil, nil
		}
	}
}

func numbersOf(copies []copyOf) map[int]bool {
	numbers := map[int]bool{}
	for _, c := range copies {
		numbers[c.mutant] = true
	}
	return numbers
}

// failedCopies returns the numbers of the mutants whose copies have compile errors.
func failedCopies(output []byte, copies []copyOf) []int {
	var numbers []int
	for _, position := range compileError.FindAllSubmatch(output, -1) {
		line, err := strconv.Atoi(string(position[2]))
		if err != nil {
			continue
		}
		for _, c := range copies {
			if c.file == string(position[1]) && c.first <= line && line <= c.last {
				numbers = append(numbers, c.mutant)
			}
		}
	}
	return numbers
}

// writeTogether writes the files and the overlay of the mutants that can be built together,
// without the omitted ones, and returns the overlay's path and the copies.
func (s *session) writeTogether(omitted map[int]bool) (string, []copyOf, error) {
	byFile := map[*sourceFile][]int{}
	for number, m := range s.all {
		if m.err == nil && !omitted[number] {
			byFile[m.change.file] = append(byFile[m.change.file], number)
		}
	}
	replace := map[string]string{}
	var copies []copyOf
	for file, numbers := range byFile {
		w := &copyWriter{file: file, name: fmt.Sprintf("together%d.go", len(replace))}
		for _, number := range numbers {
			w.add(number, s.all[number].change)
		}
		if len(w.made) == 0 {
			continue
		}
		copies = append(copies, w.made...)
		replace[file.path] = filepath.Join(s.scratch, w.name)
		if err := os.WriteFile(replace[file.path], w.text(), 0o600); err != nil {
			return "", nil, err
		}
		if err := s.writeChooser(file, replace); err != nil {
			return "", nil, err
		}
	}
	overlay, err := s.writeReplacements("together", replace)
	return overlay, copies, err
}

func (s *session) writeChooser(file *sourceFile, replace map[string]string) error {
	pkg := file.parsed.Name.Name
	added := filepath.Join(filepath.Dir(file.path), "zz_mutant_in_use.go")
	replace[added] = filepath.Join(s.scratch, "chooser_"+pkg+".go")
	return os.WriteFile(replace[added], fmt.Appendf(nil, chooser, pkg, chosenVariable), 0o600)
}

// buildTestsTogether builds the test binaries of all packages with the mutants that can be built
// together.
func (s *session) buildTestsTogether(ctx context.Context) error {
	binaries := map[string]string{}
	for _, pkg := range slices.Sorted(maps.Keys(s.packages)) {
		name := fmt.Sprintf("package%d.test", len(binaries))
		binaries[pkg] = filepath.Join(s.scratch, name)
	}
	included, err := s.buildTogether(ctx, func(overlay string) ([]byte, error) {
		for pkg, binary := range binaries {
			output, err := s.buildTests(ctx, pkg, binary, overlay)
			if err != nil {
				return output, err
			}
		}
		return nil, nil
	})
	if err != nil || included == nil {
		return err
	}
	s.included = included
	for path, pkg := range s.packages {
		pkg.binary = binaries[path]
	}
	return nil
}

func (s *session) buildTests(ctx context.Context, pkg, binary, overlay string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off",
		"-overlay", overlay, "-o", binary, pkg)
	cmd.Dir = s.runner.Root
	return cmd.CombinedOutput()
}

// runTogether runs tests of a package's binary with one mutant selected, or none.
func (s *session) runTogether(
	ctx context.Context, pkg string, tests []string, selected string,
) (testLog, error) {
	timeout := time.Duration(len(tests)) * s.runner.Timeout
	cmd := exec.CommandContext(ctx, s.packages[pkg].binary,
		"-test.v=test2json",
		"-test.paniconexit0",
		"-test.timeout", timeout.String(),
		"-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.Dir = filepath.Join(s.runner.Root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), chosenVariable+"="+selected)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var output bytes.Buffer
	cmd.Stdout = &output
	cmd.Stderr = &output
	err := cmd.Run()
	if ctx.Err() != nil {
		return testLog{}, ctx.Err()
	}
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		return testLog{}, fmt.Errorf("the tests of %s: %w", pkg, err)
	}
	convert := exec.CommandContext(ctx, "go", "tool", "test2json")
	convert.Stdin = &output
	events, err := convert.Output()
	if err != nil {
		return testLog{}, fmt.Errorf("go tool test2json: %w", err)
	}
	return readTestLog(events, ""), nil
}
