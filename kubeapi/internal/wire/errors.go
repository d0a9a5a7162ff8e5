package wire

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrMalformed is wrapped by errors about bytes that are not of the form that the
	// encoding, or the protocol, gives them.
	ErrMalformed error = &Sentinel{Text: "malformed answer", Cause: CauseInvalidResponse}

	// ErrNotSelfDescribing is returned where bytes alone do not say what they mean.
	ErrNotSelfDescribing = errors.New("the encoding does not describe itself, it needs a Go type to decode into")
)

// Sentinel is an error that says of what kind it is, in the words of a reflector's status.
type Sentinel struct{ Text, Cause string }

// The kinds of failure that a reflector cannot tell by itself.
const (
	CauseConnectionLost   = "connection-lost"
	CauseCredentials      = "credentials"
	CauseInvalidResponse  = "invalid-response"
	CauseResponseTooLarge = "response-too-large"
	CauseStalled          = "stalled"
)

func (s *Sentinel) Error() string { return s.Text }

// FailureCause is the kind.
func (s *Sentinel) FailureCause() string { return s.Cause }

// Undecodable is the error of a decoder, or of a type's own method, as an ErrMalformed. No
// more is kept of it than people can read: such errors like to hold what they were given,
// however long, and are kept for as long as an object stays bad.
func Undecodable(cause error) error {
	return fmt.Errorf("%w: %s", ErrMalformed, Printable(cause.Error(), MaxForeignText))
}

// Caught, deferred around a decoder, makes an error of its panic: the methods of a type
// are the caller's code.
func Caught(object any, err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: decoding into %T panicked: %s", ErrMalformed, object,
			Printable(fmt.Sprint(cause), MaxForeignText))
	}
}

// Inside makes the error for a body that ended where it may not.
func Inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// LimitError says that a limit was passed.
type LimitError struct {
	// What is one of the constants below.
	What string
	// Limit is what would have been allowed: bytes, or levels.
	Limit int
}

// What a LimitError can be about.
const (
	LimitValue   = "value"
	LimitNesting = "nesting"
	LimitToken   = "continue token"
	LimitMemory  = "memory"
)

// Error names the limit.
func (e *LimitError) Error() string {
	switch e.What {
	case LimitNesting:
		return fmt.Sprintf("nested deeper than %d levels", e.Limit)
	case LimitMemory:
		return fmt.Sprintf("so many values that decoding them may take more than %d bytes of memory", e.Limit)
	}
	return fmt.Sprintf("%s larger than %d bytes", e.What, e.Limit)
}

// NotListError says that the body of a list response is something else, or that of a
// watch a Status. It comes only after the whole of it was read, or as soon as the kind says
// that reading on is useless.
type NotListError struct {
	// Kind is that of the body, if it has one.
	Kind string
	// Status is set if the body is a Status object, whatever it says.
	Status *metav1.Status
}

// Error names the kind.
func (e *NotListError) Error() string { return fmt.Sprintf("a %q in place of a list", e.Kind) }
