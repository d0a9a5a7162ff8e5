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

// ErrClosed is returned by lists and watches of a closed Source.
var ErrClosed = errors.New("cachetest: the source is closed")

// errScripted is the cause of a scripted fault without an error.
var errScripted = errors.New("cachetest: scripted failure")

// ErrConnectionRefused returns an HTTP client's error for an address without a listening server.
func ErrConnectionRefused() error {
	return &url.Error{Op: "Get", URL: "http://cachetest.invalid/", Err: refusedDial()}
}

func refusedDial() error {
	return &net.OpError{
		Op:  "dial",
		Net: "tcp",
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}
}

// ErrExpired returns 410 Expired: the requested version is compacted.
func ErrExpired() error {
	return apierrors.NewResourceExpired("too old resource version")
}

// ErrTooManyRequests returns 429 TooManyRequests with a Retry-After in seconds; zero means none.
func ErrTooManyRequests(retryAfterSeconds int) error {
	return apierrors.NewTooManyRequests(
		"the server is overloaded, try again later", retryAfterSeconds)
}

// ErrInternal returns 500 InternalError.
func ErrInternal() error {
	return apierrors.NewInternalError(errScripted)
}

// ErrTooLargeResourceVersion returns 504 Timeout with the cause ResourceVersionTooLarge, an API
// server's answer to a request for a version that it has not reached.
func ErrTooLargeResourceVersion(asked, current uint64) error {
	// API servers suggest a pause of one second here.
	err := apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// errTooOld names both versions, with an API server's text.
func errTooOld(asked, oldest uint64) error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("too old resource version: %d (%d)", asked, oldest))
}

// scriptedError returns err, or ErrInternal if err is nil.
func scriptedError(err error) error {
	if err == nil {
		return ErrInternal()
	}
	return err
}

// statusOf returns the Status for err; an error without one becomes 500 InternalError.
func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = apierrors.NewInternalError(err)
	}
	status := api.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status.DeepCopy()
}

// errorEvent returns the event that reports err on an open watch.
func errorEvent(err error) watch.Event {
	return watch.Event{Type: watch.Error, Object: statusOf(err)}
}
