package clientgo

import (
	"context"
	"errors"
	"io"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// watchErrors tells a watch error handler of client-go what one of client-go's reflectors
// would tell it. Such handlers are called by the reflector alone, one call at a time, and
// need not lock anything; ours are called wherever a failure occurs.
type watchErrors struct {
	standIn standIn
	handler toolscache.WatchErrorHandlerWithContext
	// others receives what the handler does not.
	others cache.WatchErrorHandlerWithContext
}

func (w *watchErrors) report(ctx context.Context, r *cache.Reflector, err error) {
	phase := phaseOf(r)
	if !ofSource(err) || notStreamed(phase, err) {
		w.others(ctx, r, err)
		return
	}
	if phase != cache.PhaseListing && phase != cache.PhaseStreaming {
		err = bareEOF(err)
	}
	w.handler(ctx, w.standIn.of(r), err)
}

// ofSource says whether an error is of the source. Those the reflector's own goroutine
// reports; some of the others come from the goroutines of handlers, from that which looks
// for changed objects, or from the caller of the next Run.
func ofSource(err error) bool {
	switch cache.CauseOf(err) {
	case "invalid-object", "transform-error", "index-error", "store-error", "handler-error", "panic", "mutated", "misuse":
		return false
	}
	return true
}

// notStreamed says whether an error is no more than the answer of a source that does not
// stream: a list follows at once.
func notStreamed(phase cache.Phase, err error) bool {
	return phase == cache.PhaseStreaming && cache.CauseOf(err) == cache.CauseBadRequest
}

// phaseOf is what the reflector does, which it tells as what it did when it failed. A
// foreign informer may have no reflector to show.
func phaseOf(r *cache.Reflector) cache.Phase {
	if r == nil {
		return ""
	}
	return r.Status().Phase
}

// bareEOF takes everything off the errors that handlers of client-go compare with ==: to
// them they say that a watch has ended. A list that ends so has failed, and keeps its own.
func bareEOF(err error) error {
	for _, bare := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, bare) {
			return bare
		}
	}
	return err
}
