package recording

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// WriteFile writes the lines of a run to a file, which must not be there yet.
func WriteFile(path string, lines []Line) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriter(file)
	encoder := json.NewEncoder(buffered)
	for i, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return fmt.Errorf("recording %s: line %d: %w", path, i+1, err)
		}
	}
	return buffered.Flush()
}

// ReadDir reads the runs that were written into a directory, in the order of the names of
// their files. That there are none is an error: it is a wrong directory.
func ReadDir(dir string) (runs [][]Line, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("recordings in %s: %w", dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("recordings in %s: there are none", dir)
	}
	slices.Sort(paths)
	for _, path := range paths {
		lines, err := readFile(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, lines)
	}
	return runs, nil
}

func readFile(path string) (lines []Line, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	defer func() { _ = file.Close() }()
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var line Line
		switch err := decoder.Decode(&line); {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return nil, fmt.Errorf("recording %s: line %d: %w", path, len(lines)+1, err)
		}
		lines = append(lines, line)
	}
}
