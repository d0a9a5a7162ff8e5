package apiclient

import (
	"context"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
)

// sanitizedError replaces an error whose text had a secret or was too long.
type sanitizedError struct {
	text   string
	causes []error // only those without secrets
}

func (e *sanitizedError) Error() string { return e.text }

// Unwrap returns the causes, for errors.Is and errors.As.
func (e *sanitizedError) Unwrap() []error { return e.causes }

// safeCauses returns the outermost errors in err's tree that have no secret.
func (s Secrets) safeCauses(err error) []error {
	if err == nil {
		return nil
	}
	if hasConstantText(err) || s.absentFrom(err) {
		return []error{err}
	}
	var safe []error
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		safe = s.safeCauses(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, cause := range wrapper.Unwrap() {
			safe = append(safe, s.safeCauses(cause)...)
		}
	}
	return safe
}

// hasConstantText reports whether an error's text is fixed, independent of received data.
func hasConstantText(err error) bool {
	switch err := err.(type) {
	case *Sentinel:
		return true
	case interface{ Is(error) bool }:
		if err.Is(ErrTooLarge) { // a limit's name and value
			return true
		}
	}
	return slices.Contains([]error{
		io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded,
		net.ErrClosed, os.ErrDeadlineExceeded,
	}, err)
}

// maxExaminedValues bounds the values of an error that are examined.
const maxExaminedValues = 200

// absentFrom reports whether an error and the errors in it have only short texts and fields without
// a secret.
func (s Secrets) absentFrom(err error) bool {
	remaining := maxExaminedValues
	return s.absentFromText(err.Error()) && s.absentFromValue(reflect.ValueOf(err), &remaining)
}

func (s Secrets) absentFromText(text string) bool {
	return len(text) <= maxErrorText && Printable(s.Hide(text), MaxForeignText) == text
}

var (
	errorType = reflect.TypeFor[error]()
	addrType  = reflect.TypeFor[net.Addr]()
)

// absentFromValue follows only pointers to errors and addresses, which do not change. Other values
// that an error refers to, such as a connection, may be in use.
func (s Secrets) absentFromValue(v reflect.Value, remaining *int) bool {
	if *remaining--; *remaining < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return s.absentFromText(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			if !s.absentFromValue(v.Field(i), remaining) {
				return false
			}
		}
		return true
	case reflect.Interface:
		return v.IsNil() || s.absentFromValue(v.Elem(), remaining)
	case reflect.Pointer:
		return v.IsNil() ||
			(v.Type().Implements(errorType) || v.Type().Implements(addrType)) &&
				s.absentFromValue(v.Elem(), remaining)
	case reflect.Map, reflect.Func, reflect.Chan:
		return v.IsNil()
	case reflect.Slice, reflect.Array:
		return s.absentFromElements(v, remaining)
	case reflect.UnsafePointer:
		return false
	}
	return true // a number
}

func (s Secrets) absentFromElements(v reflect.Value, remaining *int) bool {
	if v.Len() > MaxForeignText {
		return false
	}
	switch v.Type().Elem().Kind() {
	case reflect.Uint8:
		text := make([]byte, v.Len())
		for i := range text {
			text[i] = byte(v.Index(i).Uint())
		}
		return s.Hide(string(text)) == string(text)
	case reflect.String, reflect.Interface, reflect.Struct, reflect.Pointer:
		for i := range v.Len() {
			if !s.absentFromValue(v.Index(i), remaining) {
				return false
			}
		}
		return true
	}
	return v.Len() == 0
}
