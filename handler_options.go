package cache

import (
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// Delivery is how an informer brings changes to one handler. Whatever it is, the
// handler is called by one goroutine, for each key with Add, then Updates, then
// Delete; it sees no key go back in time; and neither the store nor another handler
// waits for it.
type Delivery int

const (
	// Ordered brings every change in the order in which the source sent them, as
	// long as the handler keeps up. If more than max(1,024, 2 x live keys) changes
	// wait, they are merged by key until none waits any more; the status says so.
	// So what waits for a handler that hangs is bounded, whatever the source sends.
	//
	// A merged change keeps the place of its oldest part. Its Update has as old the
	// state that this handler was told last; an Add stays an Add, of the newest
	// state; an Add and its Delete that both wait are not told at all.
	Ordered Delivery = iota
	// Coalesced merges always: a handler that only wants to know which objects to
	// look at, as most controllers do, is called no more often than it can take.
	Coalesced
	// OrderedUnbounded never merges. A handler that hangs costs memory without
	// bound, as it does with client-go.
	OrderedUnbounded
)

// String names the delivery.
func (d Delivery) String() string {
	switch d {
	case Ordered:
		return "ordered"
	case Coalesced:
		return "coalesced"
	case OrderedUnbounded:
		return "ordered, unbounded"
	}
	return fmt.Sprintf("Delivery(%d)", int(d))
}

// minimumResync is the shortest resync period of a handler. The number is client-go's.
const minimumResync = time.Second

// HandlerOptions are for one handler of an informer. The zero value is useful.
type HandlerOptions struct {
	// Logger is for what concerns this handler. Default: the one in Run's context.
	Logger *klog.Logger
	// ResyncPeriod is how often the handler is told again, as an Update of an object
	// to itself, of every object that it has no change to hear of. Nil is the
	// informer's default, 0 is never; less than a second is an error.
	ResyncPeriod *time.Duration

	// Name is the handler's in the status, in reports and in its DoneChecker.
	// Default: the name of the first of its functions, where it is made of functions;
	// else its type.
	Name string
	// Delivery is how changes come. Default: Ordered.
	Delivery Delivery
	// SurvivePanics keeps a panic of the handler from ending the process: the panic
	// handlers of apimachinery have it, it is counted and reported, and the handler
	// is told of the next change. Without it, apimachinery's ReallyCrash decides, which
	// is true by default: the run ends, and the panic comes out of Run.
	SurvivePanics bool
}

// resync is the period that counts for a handler.
func (o HandlerOptions) resync(byDefault time.Duration) (time.Duration, error) {
	if o.ResyncPeriod == nil {
		return byDefault, nil
	}
	period := *o.ResyncPeriod
	switch {
	case period < 0:
		return 0, fmt.Errorf("HandlerOptions.ResyncPeriod is negative (%v): use 0 for no resync", period)
	case period > 0 && period < minimumResync:
		return 0, fmt.Errorf("HandlerOptions.ResyncPeriod is %v: the least is %v, and 0 is no resync", period, minimumResync)
	}
	return period, nil
}

// withDefaults has the defaults count for what is zero.
func (o HandlerOptions) withDefaults(defaults HandlerOptions) HandlerOptions {
	setIf(&defaults.Logger, o.Logger)
	setIf(&defaults.ResyncPeriod, o.ResyncPeriod)
	setIf(&defaults.Name, o.Name)
	setIf(&defaults.Delivery, o.Delivery)
	setIf(&defaults.SurvivePanics, o.SurvivePanics)
	return defaults
}

func (o HandlerOptions) validate() error {
	if o.Delivery < Ordered || o.Delivery > OrderedUnbounded {
		return fmt.Errorf("HandlerOptions.Delivery is unknown: %d; use Ordered, Coalesced or OrderedUnbounded", int(o.Delivery))
	}
	return nil
}
