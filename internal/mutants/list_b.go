package mutants

import "slices"

// faultMutants reintroduce the numbered faults of other caches, or parts of them.
var faultMutants = slices.Concat(
	pausingFaults,
	reportingFaults,
	objectFaults,
	handlerFaults,
	indexFaults,
	versionFaults,
	lifetimeFaults,
	resyncFaults,
)
