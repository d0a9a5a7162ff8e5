package footprint

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/inspect"
	"github.com/watchmirror/cache/internal/option"
	"github.com/watchmirror/cache/internal/table"
)

// Options are the options of Measure. The zero value is useful.
type Options struct {
	// Sample is the number of objects that are measured. Default: 1,000. Whole measures all.
	Sample int
}

// Whole is the Sample of all objects.
const Whole = math.MaxInt

const defaultSample = 1000

// ErrNoObjects is the cause if there is nothing to measure.
var ErrNoObjects = errors.New("there are no objects")

// Measure reports what the memory of the objects of a reader is spent on: of an informer, a store
// or Indexer of package cache, a cache.Reader or a snapshot. It reads a snapshot, so that it delays
// no writer, and pauses after each slice of objects. The objects that it measures are spread evenly
// over the store, and are the same in each call for the same content.
//
// It fails if ctx or the reader is nil, if the reader is of another package, if it has no objects
// (ErrNoObjects), and if ctx ends; there is no partial report. It may be called concurrently.
func Measure(ctx context.Context, reader any, optional ...Options) (*Report, error) {
	options := option.AtMostOne("footprint: Measure", optional)
	report, err := measure(ctx, reader, options)
	if err != nil {
		return nil, fmt.Errorf("measure %T: %w", reader, err)
	}
	return report, nil
}

func measure(ctx context.Context, reader any, options Options) (*Report, error) {
	if ctx == nil {
		return nil, errors.New("the context is nil")
	}
	if options.Sample < 0 {
		return nil, fmt.Errorf("Options.Sample is %d", options.Sample)
	}
	if isNil(reader) {
		return nil, errors.New("the reader is nil")
	}
	// First: if it has not synced by now, the snapshot may have only a part.
	about := describe(reader)
	view, known := inspect.Open(reader)
	if !known {
		return nil, errors.New("it is no informer, store, reader or snapshot of package cache")
	}
	if view.Len == 0 {
		return nil, about.withoutObjects()
	}
	chosen, err := choose(ctx, view, sampleOf(options))
	if err != nil {
		return nil, err
	}
	s := newSurvey(view)
	for i, entry := range chosen {
		if err := pauseEvery(ctx, sliceObjects, i); err != nil {
			return nil, err
		}
		s.add(entry)
	}
	return s.report(about), nil
}

func sampleOf(options Options) int {
	if options.Sample == 0 {
		return defaultSample
	}
	return options.Sample
}

func isNil(reader any) bool {
	v := reflect.ValueOf(reader)
	return reader == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// choose returns the entries to measure: one at random of each of so many equal parts of the view.
func choose(ctx context.Context, view inspect.View, sample int) ([]table.Entry, error) {
	sample = min(sample, view.Len)
	random := rand.New(rand.NewPCG(uint64(view.Len), uint64(sample)))
	chosen := make([]table.Entry, 0, sample)
	at := 0
	next := partBegin(0, view.Len, sample) + random.IntN(partLen(0, view.Len, sample))
	for entry := range view.Each {
		if at == next {
			chosen = append(chosen, entry)
			part := len(chosen)
			if part == sample {
				break
			}
			next = partBegin(part, view.Len, sample) + random.IntN(partLen(part, view.Len, sample))
		}
		at++
		if err := pauseEvery(ctx, sliceEntries, at); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// partBegin returns where a part of a whole begins that is divided into equal parts.
func partBegin(part, whole, parts int) int {
	return int(float64(part) * float64(whole) / float64(parts))
}

func partLen(part, whole, parts int) int {
	return partBegin(part+1, whole, parts) - partBegin(part, whole, parts)
}

const (
	// sliceObjects are measured without a pause: a few milliseconds.
	sliceObjects = 200
	// sliceEntries are passed without a pause in search of the objects to measure: a millisecond.
	sliceEntries = 50_000
	pauseTime    = 50 * time.Microsecond
)

// pauseEvery pauses if a slice of so many has ended.
func pauseEvery(ctx context.Context, slice, count int) error {
	if count%slice != 0 {
		return nil
	}
	return pause(ctx)
}

// pause lets other goroutines run. It fails once ctx has ended.
func pause(ctx context.Context) error {
	timer := time.NewTimer(pauseTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return context.Cause(ctx)
}

// about is what an informer says about itself.
type about struct {
	name       string
	incomplete bool
	handlers   []cache.HandlerStatus
}

func describe(reader any) about {
	var a about
	if reporter, ok := reader.(interface{ Status() cache.Status }); ok {
		status := reporter.Status()
		a.name = status.Name
		a.handlers = status.Handlers
	}
	if informer, ok := reader.(interface{ HasSynced() bool }); ok {
		a.incomplete = !informer.HasSynced()
	}
	return a
}

func (a about) withoutObjects() error {
	if a.incomplete {
		return fmt.Errorf("%w: it has not synced", ErrNoObjects)
	}
	return ErrNoObjects
}
