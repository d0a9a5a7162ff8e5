package script

// Values of What of the step "write": the function that fails for the object.
const (
	BadTransform      = "transform"
	BadTransformPanic = "transform-panic"
	BadIndex          = "index"
	BadIndexPanic     = "index-panic"
	BadKey            = "key"
	BadDecode         = "decode"
)

// Values of What of the steps that damage responses.
const (
	DamagedByte = "byte" // one byte is changed
	DamagedCut  = "cut"  // the connection is cut halfway
	DamagedEnd  = "end"  // the response ends halfway without an error
)

// Values of What of the step "limit-watches".
const (
	LimitIdleCut = "idle-cut"
	LimitIdleEnd = "idle-end"
	LimitCut     = "cut"
	LimitEnd     = "end"
)

// failureKinds are the errors of requests and streams.
var failureKinds = []string{
	"internal", "expired", "too-many", "too-many-pause", "refused", "unavailable", "not-found",
	"forbidden", "too-large", "invalid", "eof", "cut", "bad-frame", NotAllowed,
}

// NotAllowed is the failure of a source that can only be listed.
const NotAllowed = "not-allowed"
