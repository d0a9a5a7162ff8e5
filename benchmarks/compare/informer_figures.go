package main

import "github.com/watchmirror/cache/benchmarks/client"

// The figures of informers and their handlers. Counts and live bytes are the same in
// every run, to some percents of the stacks; delays are what the machine makes of them.

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

func goroutines(most float64) figure {
	return figure{name: "goroutines/informer", format: "%.2f", goal: goal{atMost, most},
		of: func(r client.Result) float64 { return float64(r.Goroutines) / float64(r.Items) }}
}

func heapAndStack(most float64) figure {
	return figure{name: "KiB heap + stack/informer", format: "%.1f", goal: goal{atMost, most},
		of: func(r client.Result) float64 { return float64(r.Heap+r.Stack) / float64(r.Items) / kibi }}
}

// stackAlone is a part of heapAndStack.
func stackAlone() figure {
	return figure{name: "of it stack", format: "%.1f", loose: true,
		of: func(r client.Result) float64 { return float64(r.Stack) / float64(r.Items) / kibi }}
}

func heapGrowth(most float64) figure {
	return figure{name: "MiB more, at most", format: "%.2f", slack: 0.25, goal: goal{atMost, most},
		of: func(r client.Result) float64 { return float64(r.Heap) / mebi }}
}

func drainedGrowth(most float64) figure {
	return figure{name: "MiB more, drained", format: "%.2f", slack: 0.25, goal: goal{atMost, most},
		of: func(r client.Result) float64 { return float64(r.Drained) / mebi }}
}

func calls(most float64) figure {
	some := callsCounted()
	some.goal, some.loose = goal{atMost, most}, false
	return some
}

// callsCounted is calls without a goal.
func callsCounted() figure {
	return figure{name: "handler calls", format: "%.0f", loose: true,
		of: func(r client.Result) float64 { return float64(r.Calls) }}
}

// joined is how long a handler waited for what there was when it was added.
func joined() figure {
	return figure{name: "ms until all is delivered", format: "%.0f", noisy: true,
		of: func(r client.Result) float64 { return r.Join * 1e3 }}
}

// slowest has no goal: on two cores it says as much of the scheduler as of a side.
func slowest(what string, delay func(client.Result) float64) figure {
	return figure{name: "us " + what + ", slowest", format: "%.0f", noisy: true,
		of: func(r client.Result) float64 { return delay(r) * 1e6 }}
}

func storeDelay(r client.Result) float64 { return r.StoreDelay }

func handlerDelay(r client.Result) float64 { return r.HandlerDelay }

func beforeDelay(r client.Result) float64 { return r.BeforeDelay }

func readDelay(r client.Result) float64 { return r.ReadDelay }
