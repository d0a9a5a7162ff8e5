package apiclient

// Errors of all clients; package kubeapi documents and exports them.
var (
	ErrRedirect  error = &Sentinel{Text: "redirected to another origin", Cause: CauseInvalidResponse}
	ErrTooLarge  error = &Sentinel{Text: "the answer exceeds a limit", Cause: CauseResponseTooLarge}
	ErrAuthorize error = &Sentinel{Text: "authorizing the request failed", Cause: CauseCredentials}
)

// Sentinel is an error with a cause of a reflector's status.
type Sentinel struct{ Text, Cause string }

// Causes that a reflector cannot determine itself.
const (
	CauseConnectionLost   = "connection-lost"
	CauseCredentials      = "credentials"
	CauseInvalidResponse  = "invalid-response"
	CauseResponseTooLarge = "response-too-large"
	CauseStalled          = "stalled"
)

func (s *Sentinel) Error() string { return s.Text }

// FailureCause returns the cause.
func (s *Sentinel) FailureCause() string { return s.Cause }
