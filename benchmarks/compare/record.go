package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
)

// record is what the short form once found of ours, by workload and figure: a gain that
// has been made must not be lost unnoticed, and what misses its goal so far must not get
// worse. It has stable figures only.
type record map[string]map[string]float64

// readRecord reads a record; there is none in a file that is not there.
func readRecord(path string) (record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := record{}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// write writes it so that a change is a line of a diff.
func (r record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// set records a figure, as exactly as it is compared.
func (r record) set(line, figure string, number float64) {
	if r[line] == nil {
		r[line] = map[string]float64{}
	}
	r[line][figure] = round(number)
}

// round keeps four digits.
func round(number float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(number, 'g', 4, 64), 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return 0 // which JSON can say
	}
	return rounded
}

// gate judges a figure of the short form. One that is noisy fails nothing. A stable one
// fails the run if it is further past its goal than is tolerated, or as far past what is
// recorded; where the record itself misses the goal, only the record counts. What is within
// the slack is past neither.
func (f figure) gate(s samples, recorded float64, known bool) (text string, failed bool) {
	text, failed = f.verdict(s)
	if f.noisy || f.loose {
		if failed {
			text = "short of its goal"
		}
		return text, false
	}
	if !known {
		return text, failed
	}
	number := f.counted(s.ours)
	switch {
	case number > recorded*(1+stableTolerance)+f.slack:
		return "FAIL: was " + fmt.Sprintf(f.format, recorded), true
	case failed && f.missing(recorded, s) <= f.tolerance():
		return text, true
	case failed:
		text = "short of its goal"
	}
	if number < recorded*(1-stableTolerance)-f.slack {
		text += "; was " + fmt.Sprintf(f.format, recorded) + ", record it"
	}
	return text, false
}
