package main

import (
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	// leastReduction is how many times less memory the reduced mirror must need.
	leastReduction = 4
	// A report must be that near to the heap, and a prediction to the later report.
	tolerance           = 0.1
	predictionTolerance = 0.15
)

// compare fails unless everything agrees that the reduced mirror needs a quarter or less.
func compare(out io.Writer, whole, reduced measurement, used fieldsUsed) error {
	reductions := []struct {
		by     string
		before float64
		after  float64
	}{
		{"footprint", float64(whole.report.Bytes), float64(reduced.report.Bytes)},
		{"fieldsused", float64(used.Memory.Bytes), float64(used.Memory.Kept)},
		{"heap", float64(whole.heap), float64(reduced.heap)},
	}
	fmt.Fprintf(out, "\n== times less memory\n\n")
	var errs []error
	for _, one := range reductions {
		times := one.before / one.after
		fmt.Fprintf(out, "by %-10s  %.1f\n", one.by, times)
		if times < leastReduction {
			errs = append(errs, fmt.Errorf("by %s only %.1f times less memory", one.by, times))
		}
	}
	errs = append(errs, whole.check(), reduced.check(), checkPrediction(whole, reduced, used))
	if len(used.Escapes) > 0 {
		errs = append(errs, fmt.Errorf("fieldsused names %d escapes: read them", len(used.Escapes)))
	}
	if whole.answer != reduced.answer {
		errs = append(errs, errors.New("the program's answer depends on fields that are missing"))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nthe program's answer is the same: %s\n", reduced.answer)
	fmt.Fprintf(out, "shown: the memory is a quarter or less, by footprint, fieldsused and the heap\n")
	return nil
}

// check fails if a report and the heap disagree.
func (m measurement) check() error {
	estimate := float64(m.report.Bytes + m.report.TableBytes)
	difference := estimate/float64(m.heap) - 1
	if math.Abs(difference) > tolerance {
		return fmt.Errorf("the report differs from the heap by %.0f %%", 100*difference)
	}
	return nil
}

// checkPrediction fails if the reduced mirror needs another part than fieldsused has computed from
// the first report.
func checkPrediction(whole, reduced measurement, used fieldsUsed) error {
	part := float64(used.Memory.Kept) / float64(used.Memory.Bytes)
	predicted := part * float64(whole.report.Bytes)
	difference := predicted/float64(reduced.report.Bytes) - 1
	if math.Abs(difference) > predictionTolerance {
		return fmt.Errorf("the prediction of fieldsused differs by %.0f %%", 100*difference)
	}
	return nil
}
