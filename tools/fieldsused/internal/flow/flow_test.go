package flow_test

import (
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
	"github.com/watchmirror/cache/tools/fieldsused/internal/load"
)

const (
	programDir = "../../testdata/program"
	podType    = "k8s.io/api/core/v1.Pod"
)

// loaded is the program with all constructs. It is loaded once, and each package is analyzed alone.
var loaded = sync.OnceValues(func() (*load.Program, error) {
	return load.Load(load.Options{Dir: programDir, Patterns: []string{"./..."}, Type: podType})
})

func TestEachConstructIsFollowedAndEachEscapeIsNamed(t *testing.T) {
	directories, err := os.ReadDir(programDir)
	require.NoError(t, err)
	for _, directory := range directories {
		t.Run(directory.Name(), func(t *testing.T) {
			source := filepath.Join(programDir, directory.Name(), "p.go")
			content, err := os.ReadFile(source)
			require.NoError(t, err)
			result := analyzePackage(t, directory.Name(), typeIn(string(content)))
			require.Equal(t, text(wanted(string(content))), text(usesByLine(result)))
			fields, ok := fieldsIn(string(content))
			if ok {
				require.Equal(t, fields, flow.Fields(result.Uses[0].Object, result.Uses))
			}
		})
	}
}

// analyzePackage analyzes one package of the program, with the packages of the API.
func analyzePackage(t *testing.T, name, typeName string) *flow.Result {
	t.Helper()
	program, err := loaded()
	require.NoError(t, err)
	object := findType(program, typeName)
	require.NotNil(t, object)
	var functions []*ssa.Function
	for _, function := range flow.WithoutGenerics(flow.Functions(ssautil.AllFunctions(program.SSA))) {
		pkg := flow.PackageOf(function).Path()
		if strings.HasSuffix(pkg, "/program/"+name) || program.Libraries[pkg] {
			functions = append(functions, function)
		}
	}
	return flow.Analyze(flow.Config{
		Fset:      program.Fset,
		IsObject:  func(name *types.TypeName) bool { return name == object },
		IsPart:    flow.PartsOf(object).Has,
		IsLibrary: func(pkg *types.Package) bool { return program.Libraries[pkg.Path()] },
		Anything:  object,
	}, program.SSA, functions)
}

func findType(program *load.Program, name string) *types.TypeName {
	dot := strings.LastIndex(name, ".")
	for _, pkg := range program.SSA.AllPackages() {
		if pkg.Pkg.Path() != name[:dot] {
			continue
		}
		found, _ := pkg.Pkg.Scope().Lookup(name[dot+1:]).(*types.TypeName)
		return found
	}
	return nil
}

var (
	wantComment   = regexp.MustCompile(`// want (".*")`)
	quoted        = regexp.MustCompile(`"[^"]*"`)
	fieldsComment = regexp.MustCompile(`(?m)^// fields: (.*)$`)
	typeComment   = regexp.MustCompile(`(?m)^// type: (.*)$`)
)

// wanted returns the uses that the comments of a file name, by line.
func wanted(source string) map[int][]string {
	want := map[int][]string{}
	for n, line := range strings.Split(source, "\n") {
		comment := wantComment.FindStringSubmatch(line)
		if comment == nil {
			continue
		}
		for _, text := range quoted.FindAllString(comment[1], -1) {
			want[n+1] = append(want[n+1], strings.Trim(text, `"`))
		}
		slices.Sort(want[n+1])
	}
	return want
}

// text is a form in which differences are easy to see.
func text(uses map[int][]string) string {
	var lines strings.Builder
	for _, line := range slices.Sorted(maps.Keys(uses)) {
		for _, use := range uses[line] {
			fmt.Fprintf(&lines, "%d: %s\n", line, use)
		}
	}
	return lines.String()
}

func typeIn(source string) string {
	comment := typeComment.FindStringSubmatch(source)
	if comment == nil {
		return podType
	}
	return comment[1]
}

func fieldsIn(source string) (fields []string, ok bool) {
	comment := fieldsComment.FindStringSubmatch(source)
	if comment == nil {
		return nil, false
	}
	return strings.Fields(comment[1]), true
}

func usesByLine(result *flow.Result) map[int][]string {
	uses := map[int][]string{}
	for _, u := range result.Uses {
		text := fmt.Sprintf("%s %s", u.Kind, u.Path)
		if u.How != "" {
			text += ": " + u.How
		}
		if !slices.Contains(uses[u.Site.Line], text) {
			uses[u.Site.Line] = append(uses[u.Site.Line], text)
		}
	}
	for _, texts := range uses {
		slices.Sort(texts)
	}
	return uses
}
