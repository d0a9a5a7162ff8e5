package client

// Result is what a task found.
type Result struct {
	// Items is how many there were of whatever the work is counted in: pods, events,
	// informers, operations.
	Items int
	Cost
	// Source is what the source alone cost, which is part of Cost.
	Source Cost
	// Peak is the largest live heap after a collection, Steady the live heap at the
	// end, in bytes.
	Peak, Steady uint64
	// Missed is how many collections may have found more than Peak: it is looked at the
	// heap every millisecond, and two collections may fall between two looks.
	Missed uint64

	// Goroutines, Heap and Stack (in bytes) are how much more there are of them than
	// at the start: of all idle informers, or while a handler hangs. Drained is Heap
	// once that handler has received everything.
	Goroutines, Heap, Stack, Drained int64
	// Calls is how often a handler was called for what had not changed.
	Calls int64
	// Median and P99 are of the single operations' delays, in seconds.
	Median, P99 float64
}
