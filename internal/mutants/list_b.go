package mutants

import "slices"

// faultMutants reintroduce the faults B1-B26 of other caches, or parts of them.
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
