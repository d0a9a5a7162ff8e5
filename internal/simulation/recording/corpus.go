package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Input is a candidate for a corpus.
type Input struct {
	// Values are the arguments of the fuzz target: what go test can fuzz.
	Values []any
	// Features name its properties, such as which two things follow each other.
	Features map[string]bool
}

// NewInput makes an input of what its encoder says is in it, in order: each thing, and each
// two or three that follow each other, are a feature.
func NewInput(things []string, values ...any) Input {
	features := map[string]bool{}
	for i, thing := range things {
		features[thing] = true
		if i > 0 {
			features[things[i-1]+" > "+thing] = true
		}
		if i > 1 {
			features[things[i-2]+" > "+things[i-1]+" > "+thing] = true
		}
	}
	return Input{values, features}
}

const (
	// mostInputs and mostBytes keep a corpus small: each of its files is run by every
	// go test.
	mostInputs = 12
	mostBytes  = 4 << 10
	// dearness is what an input costs beside its bytes, in bytes: without it the smallest
	// inputs of one feature each would be the best.
	dearness = 300
)

// Choose takes a few of the inputs, and of those that have the same features the
// smallest: one after the other the one that adds most for its size.
func Choose(inputs []Input) (chosen []Input) {
	has := map[string]bool{}
	sizes := make([]int, len(inputs))
	for i, input := range inputs {
		sizes[i] = len(encode(input))
	}
	for len(chosen) < mostInputs {
		best := mostWorth(inputs, sizes, has)
		if best < 0 {
			break
		}
		chosen = append(chosen, inputs[best])
		for feature := range inputs[best].Features {
			has[feature] = true
		}
	}
	return chosen
}

// mostWorth returns the index of the input that adds most new features for its size, and -1 if none
// adds any.
func mostWorth(inputs []Input, sizes []int, has map[string]bool) int {
	best := -1
	bestWorth := 0.0
	for i, input := range inputs {
		if sizes[i] > mostBytes {
			continue
		}
		added := 0
		for feature := range input.Features {
			if !has[feature] {
				added++
			}
		}
		worth := float64(added) / float64(sizes[i]+dearness)
		if worth > bestWorth {
			best = i
			bestWorth = worth
		}
	}
	return best
}

// prefix is how the names of the files begin that WriteCorpus may replace.
const prefix = "simulation-"

// WriteCorpus makes the inputs that Choose takes the corpus of a fuzz target, under testdata
// in dir, in the place of those that an earlier call has written. It returns how many.
func WriteCorpus(dir, target string, inputs []Input) (int, error) {
	corpus := filepath.Join(dir, "testdata", "fuzz", target)
	chosen := Choose(inputs)
	if len(chosen) == 0 {
		return 0, fmt.Errorf("corpus of %s: none of %d inputs can be used", target, len(inputs))
	}
	if err := os.MkdirAll(corpus, 0o755); err != nil {
		return 0, fmt.Errorf("corpus of %s: %w", target, err)
	}
	old, err := filepath.Glob(filepath.Join(corpus, prefix+"*"))
	if err != nil {
		return 0, fmt.Errorf("corpus of %s: %w", target, err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return 0, fmt.Errorf("corpus of %s: %w", target, err)
		}
	}
	for i, input := range chosen {
		path := filepath.Join(corpus, fmt.Sprintf("%s%02d", prefix, i+1))
		if err := os.WriteFile(path, []byte(encode(input)), 0o644); err != nil {
			return 0, fmt.Errorf("corpus of %s: %w", target, err)
		}
	}
	return len(chosen), nil
}

// encode is the form in which go test keeps an input: a line of Go for each value.
func encode(input Input) string {
	var text strings.Builder
	text.WriteString("go test fuzz v1\n")
	for _, value := range input.Values {
		if content, ok := value.([]byte); ok {
			fmt.Fprintf(&text, "[]byte(%q)\n", content)
		} else {
			fmt.Fprintf(&text, "%T(%#v)\n", value, value)
		}
	}
	return text.String()
}
