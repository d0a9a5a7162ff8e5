package apiclient

// Errors of all clients; package kubeapi documents and exports them.
var (
	ErrRedirect error = &Sentinel{
		Text:  "redirected to another origin",
		Cause: CauseInvalidResponse,
	}
	ErrTooLarge error = &Sentinel{
		Text:  "the response exceeds a limit",
		Cause: CauseResponseTooLarge,
	}
	ErrAuthorize error = &Sentinel{Text: "authorizing the request failed", Cause: CauseCredentials}
)

// Sentinel is a sentinel error with the cause that a reflector's status reports.
type Sentinel struct{ Text, Cause string }

// Causes that a reflector cannot determine itself.
const (
	CauseConnectionLost   = "connection-lost"
	CauseCredentials      = "credentials"
	CauseInvalidResponse  = "invalid-response"
	CauseResponseTooLarge = "response-too-large"
	CauseStalled          = "stalled"
	CauseWrongType        = "wrong-type"
)

func (s *Sentinel) Error() string { return s.Text }

// FailureCause returns the cause.
func (s *Sentinel) FailureCause() string { return s.Cause }
