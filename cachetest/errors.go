package cachetest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// ErrClosed is the error of lists and watches of a closed Source.
var ErrClosed = errors.New("cachetest: the source is closed")

// errScripted stands in where a fault was scripted without an error.
var errScripted = errors.New("cachetest: scripted failure")

// ErrConnectionRefused returns the error of an HTTP client when no server listens at the address.
func ErrConnectionRefused() error {
	return &url.Error{Op: "Get", URL: "http://cachetest.invalid/", Err: refusedDial()}
}

func refusedDial() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// ErrExpired returns 410 Expired: the requested version is compacted.
func ErrExpired() error {
	return apierrors.NewResourceExpired("too old resource version")
}

// ErrTooManyRequests returns 429 TooManyRequests with a Retry-After in seconds; zero names none.
func ErrTooManyRequests(retryAfterSeconds int) error {
	return apierrors.NewTooManyRequests("the server is overloaded, try again later", retryAfterSeconds)
}

// ErrInternal returns 500 InternalError.
func ErrInternal() error {
	return apierrors.NewInternalError(errScripted)
}

// ErrTooLargeResourceVersion returns 504 Timeout with the cause ResourceVersionTooLarge, an API server's answer to a
// request for a version that it has not reached.
func ErrTooLargeResourceVersion(asked, current uint64) error {
	// One second is the pause that API servers suggest here.
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// errTooOld names both versions, in the words clients of API servers know.
func errTooOld(asked, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, oldest))
}

// scriptedError is err, or the stand-in for a script that named none.
func scriptedError(err error) error {
	if err == nil {
		return ErrInternal()
	}
	return err
}

// statusOf is the Status that tells a client of err; errors that are no API
// errors become 500 InternalError.
func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = apierrors.NewInternalError(err)
	}
	status := api.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status.DeepCopy()
}

// errorEvent is how a failure travels on an open watch.
func errorEvent(err error) watch.Event {
	return watch.Event{Type: watch.Error, Object: statusOf(err)}
}
