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

func heapGrowth(most float64) figure {
	return figure{name: "MiB more, at most", format: "%.2f", slack: 0.25, goal: goal{atMost, most},
		of: func(r client.Result) float64 { return float64(r.Heap) / mebi }}
}

func drainedGrowth(most float64) figure {
	return figure{name: "MiB more, drained", format: "%.2f", slack: 0.25, goal: goal{atMost, most},
		of: func(r client.Result) float64 { return float64(r.Drained) / mebi }}
}

func handlerCalls(name string, most float64) figure {
	return figure{name: name, format: "%.0f", goal: upTo(most),
		of: func(r client.Result) float64 { return float64(r.Calls) }}
}

// idleCPU is of all informers together.
func idleCPU(most float64) figure {
	return figure{name: "CPU us/s", format: "%.0f", noisy: true, goal: upTo(most),
		of: func(r client.Result) float64 { return r.CPU / r.Seconds * 1e6 }}
}

// perItem is a number of a result, divided by its items.
func perItem(r client.Result, number float64) float64 { return number / float64(r.Items) }

func mallocs(what string, goal goal) figure {
	return figure{name: "allocations/" + what, format: "%.2f", goal: goal, slack: 0.02,
		of: func(r client.Result) float64 { return perItem(r, float64(r.Mallocs)) }}
}

func cpu(what string, goal goal) figure {
	return figure{name: "CPU us/" + what, format: "%.2f", goal: goal, noisy: true,
		of: func(r client.Result) float64 { return perItem(r, r.CPU*1e6) }}
}

// delay is one of some single operations'.
func delay(what string, of func(client.Result) float64, goal goal) figure {
	return figure{name: "us " + what, format: "%.1f", goal: goal, noisy: true,
		of: func(r client.Result) float64 { return of(r) * 1e6 }}
}

func medianDelay(r client.Result) float64 { return r.Median }

func p99Delay(r client.Result) float64 { return r.P99 }

// The figures of updates are without what the source alone takes.

func netCPU(number string, goal goal) figure {
	return figure{name: number + "net CPU us/event", format: "%.2f", goal: goal, noisy: true,
		of: func(r client.Result) float64 { return perItem(r, (r.CPU-r.Source.CPU)*1e6) }}
}

func throughput(goal goal) figure {
	return figure{name: "B2 M events/s", format: "%.2f", goal: goal, noisy: true, more: true,
		of: func(r client.Result) float64 { return float64(r.Items) / r.Seconds / 1e6 }}
}

// How many events are handled together depends on how busy the machine is, and what each
// batch costs is divided by them. One allocation for each event is far more.
const (
	batchSlack = 0.03
	batchBytes = 24
)

func netMallocs(number string, goal goal) figure {
	return figure{name: number + "allocations/event", format: "%.3f", goal: goal, slack: batchSlack,
		of: func(r client.Result) float64 { return perItem(r, beyond(r.Mallocs, r.Source.Mallocs)) }}
}

func netBytes(goal goal) figure {
	return figure{name: "B3 B/event", format: "%.1f", goal: goal, slack: batchBytes,
		of: func(r client.Result) float64 { return perItem(r, beyond(r.Bytes, r.Source.Bytes)) }}
}

// beyond is how much more something is: not less than nothing.
func beyond(all, source uint64) float64 { return max(0, float64(all)-float64(source)) }

// callsPerEvent says whether changes were merged on their way, which would cost less.
func callsPerEvent() figure {
	return figure{name: "handler calls/event", format: "%.2f", loose: true,
		of: func(r client.Result) float64 { return perItem(r, float64(r.Calls)) }}
}

func pendingBytes(most float64) figure {
	return figure{name: "B/pending event", format: "%.1f", goal: upTo(most), slack: 1,
		of: func(r client.Result) float64 { return perItem(r, float64(r.Heap)) }}
}
