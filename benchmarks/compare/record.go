package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

// record is what the short form once found of ours, by workload and figure: a gain that has been
// made must not be lost unnoticed, and what misses its goal must not get worse. It has stable
// figures only.
type record map[string]map[string]float64

func readRecord(path string) (record, error) {
	text, err := os.ReadFile(path)
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

// set records a figure with four digits.
func (r record) set(title string, n finding) {
	if r[title] == nil {
		r[title] = map[string]float64{}
	}
	text := strconv.FormatFloat(n.ours, 'g', 4, 64)
	rounded, _ := strconv.ParseFloat(text, 64) // which was formatted here
	r[title][n.figure.name] = rounded
}

// verdict judges a figure of the short form. A stable one fails the run if it is further past what
// is recorded than is tolerated, or the slack; others fail nothing.
func (r record) verdict(title string, n finding) (text string, failed bool) {
	text, isFarFromGoal := n.verdict()
	if isFarFromGoal {
		text = "short of its goal"
	}
	if n.figure.kind != stable {
		return text, false
	}
	recorded, known := r[title][n.figure.name]
	if !known {
		return "FAIL: not recorded", true
	}
	number := n.ours
	if number > recorded*(1+stableTolerance)+n.figure.slack {
		return "FAIL: was " + digits(recorded), true
	}
	if number < recorded*(1-stableTolerance)-n.figure.slack {
		text += "; was " + digits(recorded) + ", record it"
	}
	return text, false
}
