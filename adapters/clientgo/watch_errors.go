package clientgo

import (
	"context"
	"errors"
	"io"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// watchErrors passes to a client-go watch error handler the errors that a client-go reflector would
// report. Only the reflector calls such handlers, one call at a time, so they need no lock; this
// library's are called wherever a failure occurs.
type watchErrors struct {
	standIn standIn
	handler toolscache.WatchErrorHandlerWithContext
	// others receives all other errors.
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

// ofSource reports whether an error is of the source. The reflector's goroutine reports those.
// Others may come from goroutines of handlers, from the mutation detector, or from the caller of a
// second Run.
func ofSource(err error) bool {
	switch cache.CauseOf(err) {
	case "invalid-object",
		"transform-error",
		"index-error",
		"store-error",
		"handler-error",
		"panic",
		"mutated",
		"misuse":
		return false
	}
	return true
}

// notStreamed reports whether an error only means that the source does not stream: a list follows
// at once.
func notStreamed(phase cache.Phase, err error) bool {
	return phase == cache.PhaseStreaming && cache.CauseOf(err) == cache.CauseBadRequest
}

// phaseOf returns the reflector's phase, which still is the phase of the failure. An informer of
// another package may pass no reflector.
func phaseOf(r *cache.Reflector) cache.Phase {
	if r == nil {
		return ""
	}
	return r.Status().Phase
}

// bareEOF unwraps the errors that client-go's handlers compare with ==; to them they mean the end
// of a watch. For a list they mean a failure, so its errors stay wrapped.
func bareEOF(err error) error {
	for _, bare := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, bare) {
			return bare
		}
	}
	return err
}
