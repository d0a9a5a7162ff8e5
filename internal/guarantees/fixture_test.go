package guarantees

import "github.com/watchmirror/cache/internal/fixture"

// The fixtures that the tests of the root package have too.

type object = fixture.Object

const tagIndex = fixture.TagIndex

var (
	errBoom  = fixture.ErrBoom
	pod      = fixture.Pod
	podAt    = fixture.PodAt
	labelled = fixture.Labelled
	tagged   = fixture.Tagged
	byTag    = fixture.ByTag
)
