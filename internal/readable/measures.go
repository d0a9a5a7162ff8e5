package main

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

// measures are the numbers of one directory.
type measures struct {
	dir      string
	files    int
	tokens   int
	comments int
	// widths has the width of each line of code.
	widths    []int
	wide      []wideLine
	functions []function
	// ifInits, untaggedSwitches and tuples count constructs.
	ifInits, untaggedSwitches, tuples int
}

// wideLine is a line of code or comments.
type wideLine struct {
	file   string
	number int
}

type function struct {
	name       string
	position   token.Position
	lines      int
	complexity int
}

func (m *measures) addFile(path string, text []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	m.files++
	m.addLines(path, text)
	ast.Inspect(file, m.addConstruct)
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		first := files.Position(f.Pos())
		last := files.Position(f.End())
		m.functions = append(m.functions, function{
			name: f.Name.Name, position: first,
			lines: last.Line - first.Line + 1, complexity: complexityOf(f),
		})
	}
	return nil
}

func (m *measures) addLines(path string, text []byte) {
	tokens := tokensOfLines(text)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
		if width > maxWidth {
			m.wide = append(m.wide, wideLine{path, number})
		}
		if strings.HasPrefix(strings.TrimSpace(line), "//") {
			m.comments++
		}
		if tokens[number] > 0 {
			m.tokens += tokens[number]
			m.widths = append(m.widths, width)
		}
	}
}

// tokensOfLines returns the number of tokens that begin in each line. Semicolons that only the
// scanner sees do not count.
func tokensOfLines(text []byte) map[int]int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	count := map[int]int{}
	for {
		position, kind, literal := s.Scan()
		if kind == token.EOF {
			return count
		}
		isAutomatic := kind == token.SEMICOLON && literal == "\n"
		if !isAutomatic {
			count[file.Line(position)]++
		}
	}
}

// addConstruct is called for each node of a file.
func (m *measures) addConstruct(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.IfStmt:
		if node.Init != nil && !isDefinition(node.Init) {
			m.ifInits++
		}
	case *ast.SwitchStmt:
		if node.Tag == nil {
			m.untaggedSwitches++
		}
	case *ast.AssignStmt:
		if len(node.Lhs) > 1 && len(node.Lhs) == len(node.Rhs) {
			m.tuples++
		}
	}
	return true
}

// isDefinition reports whether a statement is of the form x := f() or x, y := f().
func isDefinition(s ast.Stmt) bool {
	assignment, ok := s.(*ast.AssignStmt)
	return ok && assignment.Tok == token.DEFINE && len(assignment.Rhs) == 1
}

func (m *measures) code() int { return len(m.widths) }

func (m *measures) commentPercent() float64 {
	return ratio(100*m.comments, m.comments+m.code())
}

func (m *measures) tokensPerLine() float64 { return ratio(m.tokens, m.code()) }

func (m *measures) perThousand(count int) float64 { return ratio(1000*count, m.code()) }

func (m *measures) widePercent() float64 {
	wide := 0
	for _, width := range m.widths {
		if width > maxWidth {
			wide++
		}
	}
	return ratio(100*wide, m.code())
}

func (m *measures) functionLengths() []int {
	var all []int
	for _, f := range m.functions {
		all = append(all, f.lines)
	}
	return all
}

func ratio(count, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(count) / float64(of)
}

// quantile returns the number that a share of the numbers does not exceed.
func quantile(numbers []int, share float64) int {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return sorted[int(share*float64(len(sorted)-1))]
}
