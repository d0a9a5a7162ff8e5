package apiclient

import (
	"context"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
)

// cleanedError replaces an error whose text had a secret or was too long.
type cleanedError struct {
	text   string
	causes []error // only those without secrets
}

func (e *cleanedError) Error() string { return e.text }

// Unwrap returns the causes, for errors.Is and errors.As.
func (e *cleanedError) Unwrap() []error { return e.causes }

// harmlessIn returns the outermost errors in err's tree that have no secret.
func (s Secrets) harmlessIn(err error) []error {
	if err == nil {
		return nil
	}
	if isConstant(err) || s.areAbsentFrom(err) {
		return []error{err}
	}
	var harmless []error
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		harmless = s.harmlessIn(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, cause := range wrapper.Unwrap() {
			harmless = append(harmless, s.harmlessIn(cause)...)
		}
	}
	return harmless
}

// isConstant reports whether an error's text is fixed, independent of received data.
func isConstant(err error) bool {
	switch err := err.(type) {
	case *Sentinel:
		return true
	case interface{ Is(error) bool }:
		if err.Is(ErrTooLarge) { // a limit's name and value
			return true
		}
	}
	return slices.Contains([]error{
		io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded, net.ErrClosed, os.ErrDeadlineExceeded,
	}, err)
}

// mostInError bounds the values of an error that are examined.
const mostInError = 200

// areAbsentFrom reports whether the text and the fields of an error, and of the errors in it, are short and have no
// secret.
func (s Secrets) areAbsentFrom(err error) bool {
	left := mostInError
	return s.areAbsentFromText(err.Error()) && s.areAbsentFromValue(reflect.ValueOf(err), &left)
}

func (s Secrets) areAbsentFromText(text string) bool {
	return len(text) <= mostErrorText && Printable(s.Hide(text), MaxForeignText) == text
}

var (
	errorType = reflect.TypeFor[error]()
	addrType  = reflect.TypeFor[net.Addr]()
)

// areAbsentFromValue follows only pointers to errors and addresses, which do not change. Other values that an error
// refers to, such as a connection, may be in use.
func (s Secrets) areAbsentFromValue(v reflect.Value, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return s.areAbsentFromText(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			if !s.areAbsentFromValue(v.Field(i), left) {
				return false
			}
		}
		return true
	case reflect.Interface:
		return v.IsNil() || s.areAbsentFromValue(v.Elem(), left)
	case reflect.Pointer:
		return v.IsNil() || (v.Type().Implements(errorType) || v.Type().Implements(addrType)) && s.areAbsentFromValue(v.Elem(), left)
	case reflect.Map, reflect.Func, reflect.Chan:
		return v.IsNil()
	case reflect.Slice, reflect.Array:
		return s.areAbsentFromElements(v, left)
	case reflect.UnsafePointer:
		return false
	}
	return true // a number
}

func (s Secrets) areAbsentFromElements(v reflect.Value, left *int) bool {
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
			if !s.areAbsentFromValue(v.Index(i), left) {
				return false
			}
		}
		return true
	}
	return v.Len() == 0
}
