package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Runner runs the test of each mutant with the mutant applied. The zero value with a Root is
// ready.
type Runner struct {
	// Root is the directory of the module.
	Root string
	// Jobs is the number of mutants that are run concurrently. Default: 2.
	Jobs int
	// Timeout ends a test that hangs, which is no kill. Default: 10 minutes.
	Timeout time.Duration
	// Report, if not nil, is called with each result, in the order of the list and not
	// concurrently.
	Report func(Result)
}

// Run runs the mutants. Before that every test must pass without a mutant. Mutants that were
// not killed are no error of Run; an error is one of the go command, the file system or ctx.
func (r *Runner) Run(ctx context.Context, all []Mutant) (Summary, error) {
	began := time.Now()
	s := &session{Runner: *r, packages: map[string]*testPackage{}}
	s.setDefaults()
	var err error
	if s.scratch, err = os.MkdirTemp("", "mutants"); err != nil {
		return Summary{}, err
	}
	defer os.RemoveAll(s.scratch)
	if err := s.runWithoutMutants(ctx, all); err != nil {
		return Summary{}, err
	}
	results, err := s.runAll(ctx, all)
	summary := Summary{Total: len(all), Took: time.Since(began)}
	for _, result := range results {
		if result.Killed {
			summary.Killed++
		} else {
			summary.Left = append(summary.Left, result.Mutant.Name)
		}
	}
	return summary, err
}

// session is one run of a Runner.
type session struct {
	Runner
	// scratch is the temporary directory for mutated files and overlays.
	scratch  string
	packages map[string]*testPackage
	// included are the numbers of the mutants that are built together.
	included map[int]bool
}

// testPackage is a package whose tests kill mutants.
type testPackage struct {
	files []*testFile
	// log is the log of the tests without mutants; binary has the mutants that are built together,
	// "" if there is none.
	log    testLog
	binary string
}

func (s *session) setDefaults() {
	if s.Jobs <= 0 {
		s.Jobs = 2
	}
	if s.Timeout <= 0 {
		s.Timeout = 10 * time.Minute
	}
}

// runWithoutMutants runs all tests without mutants, by package.
func (s *session) runWithoutMutants(ctx context.Context, all []Mutant) error {
	tests := map[string][]string{}
	for _, m := range all {
		if !slices.Contains(tests[m.pkg()], m.Test) {
			tests[m.pkg()] = append(tests[m.pkg()], m.Test)
		}
	}
	binaries, included, err := s.buildTogether(ctx, all, slices.Sorted(maps.Keys(tests)))
	if err != nil {
		return err
	}
	s.included = included
	for pkg, names := range tests {
		files, err := testFilesOf(filepath.Join(s.Root, filepath.FromSlash(pkg)))
		if err != nil {
			return err
		}
		var log testLog
		if binary := binaries[pkg]; binary != "" {
			log, err = s.runTogether(ctx, pkg, binary, names, "")
		} else {
			log, err = testRun{root: s.Root, pkg: pkg, tests: names, timeout: time.Duration(len(names)) * s.Timeout}.run(ctx)
		}
		if err != nil {
			return err
		}
		s.packages[pkg] = &testPackage{files, log, binaries[pkg]}
	}
	return nil
}

// runAll runs the mutants, Jobs at a time, and reports them in the order of the list.
func (s *session) runAll(ctx context.Context, all []Mutant) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	results, errs := make([]Result, len(all)), make([]error, len(all))
	done := make([]chan struct{}, len(all))
	next := make(chan int, len(all))
	for i := range all {
		done[i] = make(chan struct{})
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for range s.Jobs {
		workers.Go(func() {
			for i := range next {
				began := time.Now()
				results[i], errs[i] = s.runOne(ctx, i, all[i])
				results[i].Took = time.Since(began)
				close(done[i])
			}
		})
	}
	for i := range all {
		<-done[i]
		if errs[i] != nil {
			// The others end soon: ctx has ended, or the go command cannot be run.
			return results[:i], fmt.Errorf("mutant %s: %w", all[i].Name, errs[i])
		}
		if s.Report != nil {
			s.Report(results[i])
		}
	}
	return results, nil
}

// runOne builds one mutant and runs its test.
func (s *session) runOne(ctx context.Context, number int, m Mutant) (Result, error) {
	result := Result{Mutant: m}
	pkg := s.packages[m.pkg()]
	if result.Err = pkg.log.passed(m.Test); result.Err != nil {
		result.Output = pkg.log.outputOf(m.Test)
		return result, nil
	}
	changed, err := m.mutate(s.Root)
	if err != nil {
		result.Err = fmt.Errorf("%w: %w", ErrOutdated, err)
		return result, nil
	}
	result.Line = changed.line
	if s.included[number] && pkg.binary != "" {
		log, err := s.runTogether(ctx, m.pkg(), pkg.binary, []string{m.Test}, strconv.Itoa(number+1))
		if err == nil {
			result.setOutcome(log)
		}
		return result, err
	}
	left, err := unneededFiles(pkg.files, m.Test)
	if err != nil {
		result.Err = fmt.Errorf("%w: %w", ErrNoTest, err)
		return result, nil
	}
	overlay, err := s.writeOverlay(number, changed, left)
	if err != nil {
		return result, err
	}
	log, err := testRun{root: s.Root, pkg: m.pkg(), tests: []string{m.Test}, overlay: overlay, timeout: s.Timeout}.run(ctx)
	if err != nil {
		return result, err
	}
	result.setOutcome(log)
	return result, nil
}

// writeOverlay writes the mutated file, and an overlay that replaces the original by it and
// removes the unneeded test files. It returns the overlay's path.
func (s *session) writeOverlay(number int, changed mutation, left []string) (string, error) {
	mutated := filepath.Join(s.scratch, fmt.Sprintf("%d.go", number))
	replace := map[string]string{changed.path: mutated}
	for _, path := range left {
		replace[path] = "" // an absent file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(s.scratch, fmt.Sprintf("%d.json", number))
	return overlay, errors.Join(os.WriteFile(mutated, changed.text, 0o600), os.WriteFile(overlay, text, 0o600))
}
