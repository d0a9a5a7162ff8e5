package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

const (
	// maxFailures before the first list is complete, and it is given up. A mirror
	// that is part of a service would go on for ever; somebody who waits at
	// a terminal has mistyped an address.
	maxFailures = 3
	// maxSilence is how long nothing may come from the server meanwhile.
	maxSilence = 10 * time.Second
)

// trial is a server's time to prove itself: until the first list is complete. Its
// methods may be called concurrently, wait by one only.
type trial struct {
	server string
	what   string
	// alive is full if something has come from the server since wait last looked.
	alive chan struct{}
	// failures has room for as many as end the trial.
	failures chan error
}

func newTrial(server, what string) *trial {
	return &trial{server: server, what: what, alive: make(chan struct{}, 1), failures: make(chan error, maxFailures)}
}

// heard notes that the server has answered.
func (t *trial) heard() {
	select {
	case t.alive <- struct{}{}:
	default:
	}
}

// failed notes a failure. Those past the ones that end the trial are of no interest.
func (t *trial) failed(err error) {
	select {
	case t.failures <- err:
	default:
	}
}

// wait returns nil once synced is closed, errInterrupted if ctx ends first, and
// otherwise why this server cannot be mirrored.
func (t *trial) wait(ctx context.Context, synced <-chan struct{}) error {
	silence := time.NewTimer(maxSilence)
	defer silence.Stop()
	var last error
	for failures := 0; ; {
		select {
		case <-synced:
			return nil
		case <-ctx.Done():
			return errInterrupted
		case <-t.alive:
			silence.Reset(maxSilence)
		case <-silence.C:
			return t.verdict(fmt.Sprintf("it has sent nothing for %v", maxSilence), last)
		case err := <-t.failures:
			last = err
			if failures++; failures == maxFailures || isFinal(err) {
				return t.verdict(advice(err), err)
			}
		}
	}
}

func (t *trial) verdict(why string, err error) error {
	verdict := fmt.Sprintf("cannot mirror %s from %s:\n  %s", t.what, t.server, why)
	if err != nil {
		return fmt.Errorf("%s\n  %w", verdict, err)
	}
	return errors.New(verdict)
}

// isFinal says whether trying again in a moment makes no sense.
func isFinal(err error) bool {
	switch cache.CauseOf(err) {
	case cache.CauseUnauthorized, cache.CauseForbidden, cache.CauseNotFound, cache.CauseRejected:
		return true
	}
	return notAnAPI(err) || noSuchHost(err) || untrusted(err) ||
		errors.Is(err, kubeapi.ErrAuthorize) || errors.Is(err, http.ErrSchemeMismatch)
}

// advice says in the words of the flags what to do about an error.
func advice(err error) string {
	switch cause := cache.CauseOf(err); {
	case cause == cache.CauseRefused:
		return "nobody listens at that address; if it is kubectl proxy's, is that running?"
	case cause == cache.CauseUnauthorized:
		return "it wants a login (401); -token-file names a file with a bearer token"
	case cause == cache.CauseForbidden:
		return "this login may not list them (403); -namespace asks for one namespace only"
	case cause == cache.CauseNotFound:
		return "it does not have them (404); either the -resource is none of its own, or the address is not that of an API"
	case errors.Is(err, kubeapi.ErrAuthorize):
		return "the -token-file cannot be used"
	case errors.Is(err, kubeapi.ErrRedirect):
		return "it sends requests on to another address; if that is the right one, give it as -server"
	case notAnAPI(err):
		return "what answers there is not a Kubernetes-style API"
	case noSuchHost(err):
		return "no host has that name"
	case untrusted(err):
		return "its certificate is not trusted; -ca-file names a PEM file with the certificates to trust"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks http, not https"
	}
	return "it does not answer as it should"
}

func notAnAPI(err error) bool {
	return errors.Is(err, kubeapi.ErrContentType) || errors.Is(err, kubeapi.ErrNotList) ||
		errors.Is(err, kubeapi.ErrMalformed) || errors.Is(err, kubeapi.ErrRedirect)
}

func noSuchHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}
