package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	s, err := r.newSession(all)
	if err != nil {
		return Summary{}, err
	}
	defer os.RemoveAll(s.scratch)
	if err := s.runWithoutMutants(ctx); err != nil {
		return Summary{}, err
	}
	results, err := s.runAll(ctx)
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

// Check finds the place of each mutant and compiles the changed packages. It runs no test and
// does not call Report. It returns an error for each mutant that does not apply or compile.
func (r *Runner) Check(ctx context.Context, all []Mutant) error {
	s, err := r.newSession(all)
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.scratch)
	var packages []string
	for _, m := range all {
		if !slices.Contains(packages, m.changedPackage()) {
			packages = append(packages, m.changedPackage())
		}
	}
	included, err := s.buildTogether(ctx, func(overlay string) ([]byte, error) {
		return s.build(ctx, overlay, packages...)
	})
	if err != nil {
		return err
	}
	var errs []error
	for number, m := range s.all {
		if m.err == nil && !included[number] {
			m.err = s.buildAlone(ctx, number)
		}
		errs = append(errs, m.err)
	}
	return errors.Join(errs...)
}

// session is one run of a Runner.
type session struct {
	runner Runner
	all    []located
	// scratch is the temporary directory for mutated files and overlays.
	scratch string
	// packages have the tests, by package.
	packages map[string]*testPackage
	// included are the numbers of the mutants that are built together.
	included map[int]bool
}

// testPackage is a package whose tests kill mutants.
type testPackage struct {
	files []*testFile
	// tests are the tests that kill mutants.
	tests []string
	// log is the log of the tests without mutants.
	log testLog
	// binary has the mutants that are built together, "" if there is none.
	binary string
}

func (r *Runner) newSession(all []Mutant) (*session, error) {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	s := &session{
		runner:   *r,
		all:      locate(r.Root, all),
		scratch:  scratch,
		packages: map[string]*testPackage{},
	}
	if s.runner.Jobs <= 0 {
		s.runner.Jobs = 2
	}
	if s.runner.Timeout <= 0 {
		s.runner.Timeout = 10 * time.Minute
	}
	return s, nil
}

// runWithoutMutants runs all tests without mutants, by package.
func (s *session) runWithoutMutants(ctx context.Context) error {
	if err := s.readTests(); err != nil {
		return err
	}
	if err := s.buildTestsTogether(ctx); err != nil {
		return err
	}
	for path, pkg := range s.packages {
		log, err := s.runTests(ctx, path, pkg)
		if err != nil {
			return err
		}
		pkg.log = log
	}
	return nil
}

func (s *session) readTests() error {
	for _, m := range s.all {
		pkg := s.packages[m.pkg()]
		if pkg == nil {
			files, err := testFilesOf(filepath.Join(s.runner.Root, filepath.FromSlash(m.pkg())))
			if err != nil {
				return err
			}
			pkg = &testPackage{files: files}
			s.packages[m.pkg()] = pkg
		}
		if !slices.Contains(pkg.tests, m.Test) {
			pkg.tests = append(pkg.tests, m.Test)
		}
	}
	return nil
}

func (s *session) runTests(ctx context.Context, path string, pkg *testPackage) (testLog, error) {
	if pkg.binary != "" {
		return s.runTogether(ctx, path, pkg.tests, "")
	}
	run := testRun{
		root:    s.runner.Root,
		pkg:     path,
		tests:   pkg.tests,
		timeout: time.Duration(len(pkg.tests)) * s.runner.Timeout,
	}
	return run.run(ctx)
}

// runAll runs the mutants, Jobs at a time, and reports them in the order of the list.
func (s *session) runAll(ctx context.Context) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	results := make([]Result, len(s.all))
	errs := make([]error, len(s.all))
	done := make([]chan struct{}, len(s.all))
	next := make(chan int, len(s.all))
	for i := range s.all {
		done[i] = make(chan struct{})
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for range s.runner.Jobs {
		workers.Go(func() {
			for i := range next {
				began := time.Now()
				results[i], errs[i] = s.runOne(ctx, i)
				results[i].Took = time.Since(began)
				close(done[i])
			}
		})
	}
	for i, m := range s.all {
		<-done[i]
		if errs[i] != nil {
			// The others end soon: ctx has ended, or the go command cannot be run.
			return results[:i], fmt.Errorf("mutant %s: %w", m.Name, errs[i])
		}
		if s.runner.Report != nil {
			s.runner.Report(results[i])
		}
	}
	return results, nil
}

// runOne runs the test of one mutant.
func (s *session) runOne(ctx context.Context, number int) (Result, error) {
	m := s.all[number]
	result := Result{Mutant: m.Mutant}
	pkg := s.packages[m.pkg()]
	result.Err = pkg.log.passed(m.Test)
	if result.Err != nil {
		result.Output = pkg.log.outputOf(m.Test)
		return result, nil
	}
	if m.err != nil {
		result.Err = m.err
		return result, nil
	}
	result.File = m.path()
	result.Line = m.change.line()
	log, err := s.runMutant(ctx, number, pkg)
	if err != nil {
		return result, err
	}
	result.setOutcome(log)
	if !result.Killed && m.change.in != m.In {
		// The same code may mean something else there.
		result.Err = fmt.Errorf("%w; its code is in %s, and no longer in %s",
			result.Err, m.change.in, m.In)
	}
	return result, nil
}

func (s *session) runMutant(ctx context.Context, number int, pkg *testPackage) (testLog, error) {
	m := s.all[number]
	if s.included[number] && pkg.binary != "" {
		return s.runTogether(ctx, m.pkg(), []string{m.Test}, strconv.Itoa(number+1))
	}
	unneeded, err := unneededFiles(pkg.files, m.Test)
	if err != nil {
		return testLog{}, err
	}
	overlay, err := s.writeOverlay(number, unneeded)
	if err != nil {
		return testLog{}, err
	}
	run := testRun{
		root:    s.runner.Root,
		pkg:     m.pkg(),
		tests:   []string{m.Test},
		overlay: overlay,
		timeout: s.runner.Timeout,
	}
	return run.run(ctx)
}

// writeOverlay writes the mutated file, and an overlay that replaces the original by it and
// removes the unneeded test files. It returns the overlay's path.
func (s *session) writeOverlay(number int, unneeded []string) (string, error) {
	changed := s.all[number].change
	mutated := filepath.Join(s.scratch, fmt.Sprintf("%d.go", number))
	if err := os.WriteFile(mutated, changed.text(), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{changed.file.path: mutated}
	for _, path := range unneeded {
		replace[path] = "" // an absent file
	}
	return s.writeReplacements(strconv.Itoa(number), replace)
}

// writeReplacements writes an overlay, and returns its path.
func (s *session) writeReplacements(name string, replace map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(s.scratch, name+".json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// buildAlone compiles a mutant's changed package.
func (s *session) buildAlone(ctx context.Context, number int) error {
	overlay, err := s.writeOverlay(number, nil)
	if err != nil {
		return err
	}
	m := s.all[number]
	output, err := s.build(ctx, overlay, m.changedPackage())
	if err != nil {
		return fmt.Errorf("mutant %s %w: %s", m.Name, ErrNotBuilt, output)
	}
	return nil
}

// build compiles packages, and returns the output of the compiler.
func (s *session) build(ctx context.Context, overlay string, packages ...string) ([]byte, error) {
	arguments := append([]string{"build", "-overlay", overlay}, packages...)
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = s.runner.Root
	return cmd.CombinedOutput()
}
