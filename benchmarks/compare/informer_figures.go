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

func handlerCalls(most float64) figure {
	return figure{name: "handler calls", format: "%.0f", goal: upTo(most),
		of: func(r client.Result) float64 { return float64(r.Calls) }}
}

// idleCPU is of all informers together.
func idleCPU(most float64) figure {
	return figure{name: "CPU us/s", format: "%.0f", noisy: true, goal: upTo(most),
		of: func(r client.Result) float64 { return r.CPU / r.Seconds * 1e6 }}
}
