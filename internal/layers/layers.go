package main

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/watchmirror/cache/internal/typecheck"
)

// layers has the layer of each file.
type layers struct {
	// files are in the order of the file of layers.
	files []string
	// names are the layers from the lowest to the highest.
	names []string
	// layerOf has the index in names of each file's layer.
	layerOf map[string]int
}

// parse reads lines of a file and its layer. A layer's files stand together.
func parse(text string) (*layers, error) {
	l := &layers{layerOf: map[string]int{}}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%q is not a file and its layer", strings.TrimSpace(line))
		}
		if err := l.add(fields[0], fields[1]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *layers) add(file, layer string) error {
	if _, exists := l.layerOf[file]; exists {
		return fmt.Errorf("%s is listed twice", file)
	}
	last := len(l.names) - 1
	index := slices.Index(l.names, layer)
	if index >= 0 && index < last {
		return fmt.Errorf("%s stands apart from the other files of layer %s", file, layer)
	}
	if index < 0 {
		index = len(l.names)
		l.names = append(l.names, layer)
	}
	l.files = append(l.files, file)
	l.layerOf[file] = index
	return nil
}

// compareFiles returns a problem for each file that is only listed or only in the package.
func (l *layers) compareFiles(files []string) (problems []string) {
	for _, file := range files {
		if _, listed := l.layerOf[file]; !listed {
			problems = append(problems, fmt.Sprintf("%s has no layer in %s", file, layersFile))
		}
	}
	for _, file := range l.files {
		if !slices.Contains(files, file) {
			problems = append(
				problems, fmt.Sprintf("%s lists %s, which does not exist", layersFile, file))
		}
	}
	return problems
}

// upwardUses returns a problem for each use of a declaration of a higher layer.
func (l *layers) upwardUses(source *typecheck.Source) (problems []string) {
	upward := map[token.Position]types.Object{}
	for identifier, object := range source.Uses {
		if object.Pkg() != source.Types || !object.Pos().IsValid() {
			continue
		}
		use := source.Position(identifier.Pos())
		declaration := source.Position(object.Pos())
		if l.layerOf[use.Filename] < l.layerOf[declaration.Filename] {
			upward[use] = object
		}
	}

	for _, use := range slices.SortedFunc(maps.Keys(upward), comparePositions) {
		object := upward[use]
		file := source.Position(object.Pos()).Filename
		problems = append(
			problems,
			fmt.Sprintf(
				"%s:%d: layer %s uses %s of %s, in the higher layer %s", use.Filename, use.Line,
				l.nameOf(use.Filename), object.Name(), file, l.nameOf(file)),
		)
	}
	return problems
}

func (l *layers) nameOf(file string) string { return l.names[l.layerOf[file]] }

func comparePositions(a, b token.Position) int {
	return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Offset, b.Offset))
}
