package mutants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mutants that change the body of one function are built together, once for each package of tests, because building them one by one
// takes most of the time. Each is a copy of its function; the original begins by calling the copy that the environment variable names.
// All other mutants are built one by one.

// chosenVariable is the environment variable that selects a mutant by its number in the list, from 1.
const chosenVariable = "MUTANT"

// copyOf has the lines of the copy of a mutant's function in a written file.
type copyOf struct {
	mutant      int
	path        string
	first, last int
}

// writeTogether writes the files and the overlay of the mutants that can be built together, without those in leftOut, and returns the
// overlay's path and the copies.
func (s *session) writeTogether(all []Mutant, leftOut map[int]bool) (overlay string, copies []copyOf, err error) {
	byFile := map[string][]int{}
	for number, m := range all {
		if !leftOut[number] {
			byFile[m.File] = append(byFile[m.File], number)
		}
	}
	replace := map[string]string{}
	for file, numbers := range byFile {
		path := filepath.Join(s.Root, filepath.FromSlash(file))
		original, err := os.ReadFile(path)
		if err != nil {
			continue // runOne reports it
		}
		text, pkg, some := withCopies(original, all, numbers)
		if len(some) == 0 {
			continue
		}
		for i := range some {
			some[i].path = fmt.Sprintf("together%d.go", len(replace))
		}
		copies = append(copies, some...)
		replace[path] = filepath.Join(s.scratch, fmt.Sprintf("together%d.go", len(replace)))
		chooser := filepath.Join(filepath.Dir(path), "zz_mutant_in_use.go")
		replace[chooser] = filepath.Join(s.scratch, "chooser_"+pkg+".go")
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			return "", nil, err
		}
		if err := os.WriteFile(replace[chooser], fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar mutantInUse = os.Getenv(%q)\n", pkg, chosenVariable), 0o600); err != nil {
			return "", nil, err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", nil, err
	}
	overlay = filepath.Join(s.scratch, "together.json")
	return overlay, copies, os.WriteFile(overlay, text, 0o600)
}

// edit replaces bytes of a file.
type edit struct {
	from, to int
	text     string
}

// withCopies returns a file with a copy of a function for each mutant that changes a function body, and these copies.
func withCopies(original []byte, all []Mutant, numbers []int) (text []byte, pkg string, made []copyOf) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", original, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", nil
	}
	var edits []edit
	var copies bytes.Buffer
	for _, number := range numbers {
		m := all[number]
		at := bytes.Index(original, []byte(m.From))
		if at < 0 || bytes.Count(original, []byte(m.From)) != 1 {
			continue
		}
		f, call, renames := functionCopy(parsed, files, at, at+len(m.From), number)
		if f == nil {
			continue
		}
		offset := func(p token.Pos) int { return files.Position(p).Offset }
		begin, end := offset(f.Pos()), offset(f.End())
		changes := append(slices.Clone(renames), edit{at, at + len(m.From), m.To},
			edit{offset(f.Name.Pos()), offset(f.Name.End()), copyName(f, number)})
		mutated := applyEdits(original[begin:end], begin, changes)
		if _, err := parser.ParseFile(token.NewFileSet(), "", append([]byte("package p\n"), mutated...), parser.SkipObjectResolution); err != nil {
			continue
		}
		// Text inserted into the original has no line breaks.
		first := 1 + bytes.Count(original, []byte("\n")) + bytes.Count(copies.Bytes(), []byte("\n"))
		fmt.Fprintf(&copies, "\n%s\n", mutated)
		made = append(made, copyOf{mutant: number, first: first, last: first + 1 + bytes.Count(mutated, []byte("\n"))})
		for _, rename := range renames {
			if !slices.Contains(edits, rename) {
				edits = append(edits, rename)
			}
		}
		edits = append(edits, edit{offset(f.Body.Lbrace) + 1, offset(f.Body.Lbrace) + 1, call})
	}
	return append(applyEdits(original, 0, edits), copies.Bytes()...), parsed.Name.Name, made
}

// applyEdits applies edits to a text that begins at an offset of its file.
func applyEdits(text []byte, begin int, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out bytes.Buffer
	done := 0
	for _, e := range edits {
		out.Write(text[done : e.from-begin])
		out.WriteString(e.text)
		done = e.to - begin
	}
	out.Write(text[done:])
	return out.Bytes()
}

func copyName(f *ast.FuncDecl, number int) string {
	return f.Name.Name + "Mutant" + strconv.Itoa(number+1)
}

// functionCopy returns the function whose body contains the bytes from..to, the call of its copy, and edits that name its unnamed
// parameters. It returns nil if there is none, or if a copy would behave differently because recover and runtime.Callers depend on the depth.
func functionCopy(parsed *ast.File, files *token.FileSet, from, to, number int) (f *ast.FuncDecl, call string, renames []edit) {
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	for _, declaration := range parsed.Decls {
		d, is := declaration.(*ast.FuncDecl)
		if is && d.Body != nil && offset(d.Body.Lbrace) < from && to < offset(d.Body.Rbrace)+1 {
			f = d
		}
	}
	if f == nil || f.Name.Name == "init" || dependsOnDepth(f.Body) {
		return nil, "", nil
	}
	name := func(field *ast.Field) (names []string, ok bool) {
		for _, n := range field.Names {
			text := n.Name
			if text == "_" {
				text = fmt.Sprintf("unused%d", offset(n.Pos()))
				renames = append(renames, edit{offset(n.Pos()), offset(n.End()), text})
			}
			names = append(names, text)
		}
		return names, len(names) > 0
	}
	called := copyName(f, number)
	if f.Recv != nil {
		names, ok := name(f.Recv.List[0])
		if !ok {
			return nil, "", nil
		}
		called = names[0] + "." + called
	}
	if f.Type.TypeParams != nil {
		var types []string
		for _, field := range f.Type.TypeParams.List {
			names, _ := name(field)
			types = append(types, names...)
		}
		called += "[" + strings.Join(types, ", ") + "]"
	}
	var arguments []string
	for _, field := range f.Type.Params.List {
		names, ok := name(field)
		if !ok {
			return nil, "", nil
		}
		arguments = append(arguments, names...)
		if _, many := field.Type.(*ast.Ellipsis); many {
			arguments[len(arguments)-1] += "..."
		}
	}
	called += "(" + strings.Join(arguments, ", ") + ")"
	if f.Type.Results == nil {
		return f, fmt.Sprintf(" if mutantInUse == \"%d\" { %s; return };", number+1, called), renames
	}
	return f, fmt.Sprintf(" if mutantInUse == \"%d\" { return %s };", number+1, called), renames
}

// dependsOnDepth says whether a function calls recover or runtime.Callers.
func dependsOnDepth(body *ast.BlockStmt) (depends bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			switch called := n.Fun.(type) {
			case *ast.Ident:
				depends = depends || called.Name == "recover"
			case *ast.SelectorExpr:
				depends = depends || strings.HasPrefix(called.Sel.Name, "Caller")
			}
		}
		return true
	})
	return depends
}

// compileError matches the positions of compile errors in the files that writeTogether wrote.
var compileError = regexp.MustCompile(`(together[0-9]+\.go):([0-9]+)`)

// buildTogether builds the test binaries of packages with all mutants that can be built together, and returns both. Mutants that do not
// compile are omitted. If the build fails for another reason, nothing is built together.
func (s *session) buildTogether(ctx context.Context, all []Mutant, packages []string) (binaries map[string]string, included map[int]bool, err error) {
	leftOut := map[int]bool{}
	for {
		overlay, copies, err := s.writeTogether(all, leftOut)
		if err != nil {
			return nil, nil, err
		}
		binaries, included = map[string]string{}, map[int]bool{}
		for _, c := range copies {
			included[c.mutant] = true
		}
		var said []byte
		for i, pkg := range packages {
			binaries[pkg] = filepath.Join(s.scratch, fmt.Sprintf("package%d.test", i))
			cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binaries[pkg], pkg)
			cmd.Dir = s.Root
			if said, err = cmd.CombinedOutput(); err != nil {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err == nil:
			return binaries, included, nil
		}
		before := len(leftOut)
		for _, place := range compileError.FindAllSubmatch(said, -1) {
			line, _ := strconv.Atoi(string(place[2]))
			for _, c := range copies {
				if c.path == string(place[1]) && c.first <= line && line <= c.last {
					leftOut[c.mutant] = true
				}
			}
		}
		if len(leftOut) == before {
			return nil, nil, nil
		}
	}
}

// runTogether runs tests of a binary with one mutant selected, or none.
func (s *session) runTogether(ctx context.Context, pkg, binary string, tests []string, inUse string) (testLog, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.v=test2json", "-test.paniconexit0", "-test.timeout", (time.Duration(len(tests)) * s.Timeout).String(),
		"-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.Dir = filepath.Join(s.Root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), chosenVariable+"="+inUse)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if ctx.Err() != nil {
		return testLog{}, ctx.Err()
	}
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		return testLog{}, fmt.Errorf("the tests of %s: %w", pkg, err)
	}
	convert := exec.CommandContext(ctx, "go", "tool", "test2json")
	convert.Stdin = &said
	events, err := convert.Output()
	if err != nil {
		return testLog{}, fmt.Errorf("go tool test2json: %w", err)
	}
	return readTestLog(events, ""), nil
}
