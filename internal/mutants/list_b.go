package mutants

import "slices"

// faultMutants put back the faults B1-B26 of other caches, or a part of one, each in
// the way in which somebody might write it who means well.
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
