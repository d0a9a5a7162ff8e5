package wire

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
)

var (
	// ErrMalformed is wrapped by errors for bytes that do not conform to the encoding or the
	// protocol.
	ErrMalformed error = &apiclient.Sentinel{
		Text:  "malformed response",
		Cause: apiclient.CauseInvalidResponse,
	}

	// ErrNotSelfDescribing: the bytes have a meaning only together with a Go type.
	ErrNotSelfDescribing = errors.New(
		"the encoding is not self-describing, decoding needs a Go type")
)

// Undecodable wraps a decoder's error, or that of a type's own method, as an ErrMalformed. It keeps
// only a short text: such errors may contain the input, and are kept as long as the object is
// quarantined.
func Undecodable(err error) error {
	printable := apiclient.Printable(err.Error(), apiclient.MaxForeignText)
	return fmt.Errorf("%w: %s", ErrMalformed, printable)
}

// Caught, deferred around a decoder, turns its panic into an error: a type's methods are the
// caller's code.
func Caught(object any, err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: decoding into %T panicked: %s", ErrMalformed, object,
			apiclient.Printable(fmt.Sprint(cause), apiclient.MaxForeignText))
	}
}

// Inside turns io.EOF into io.ErrUnexpectedEOF, for a body that ended inside a value.
func Inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// LimitError means that a limit was exceeded.
type LimitError struct {
	// What is one of the constants below.
	What string
	// Limit is the limit's value in bytes or levels.
	Limit int
}

// Values of LimitError.What.
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
		return fmt.Sprintf("decoding may need more than %d bytes of memory", e.Limit)
	}
	return fmt.Sprintf("%s larger than %d bytes", e.What, e.Limit)
}

// NotListError means that the body of a list is another object, or that the body of a watch is a
// Status. It is returned after the whole body was read, or as soon as the kind makes reading on
// useless.
type NotListError struct {
	// Kind is that of the body, if it has one.
	Kind string
	// Status is set if the body is a Status object, successful or not.
	Status *metav1.Status
}

// Error names the kind.
func (e *NotListError) Error() string { return fmt.Sprintf("a %q in place of a list", e.Kind) }
