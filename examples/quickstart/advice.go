package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// isFinal says whether trying again in a moment makes no sense.
func isFinal(err error) bool {
	switch cache.CauseOf(err) {
	case cache.CauseUnauthorized, cache.CauseForbidden, cache.CauseNotFound, cache.CauseRejected:
		return true
	}
	return notAnAPI(err) || noSuchHost(err) || untrusted(err) ||
		errors.Is(err, kubeapi.ErrAuthorize) || errors.Is(err, http.ErrSchemeMismatch)
}

// advice says in the words of the flags what to do about an error of a stage, and does
// not name as a way out what was tried: the flags that are given.
func advice(err error, s stage, given settings) string {
	switch cause := cache.CauseOf(err); {
	case cause == cache.CauseRefused:
		return "nobody listens at that address; if it is kubectl proxy's, is that running?"
	case cause == cache.CauseUnauthorized && given.tokenFile != "":
		return "it does not accept the token in the -token-file (401)"
	case cause == cache.CauseUnauthorized:
		return "it wants a login (401); -token-file names a file with a bearer token"
	case cause == cache.CauseForbidden && given.namespace != "":
		return fmt.Sprintf("this login may not %v them in namespace %s (403)", s, given.namespace)
	case cause == cache.CauseForbidden:
		return fmt.Sprintf("this login may not %v them (403); -namespace asks for one namespace only", s)
	case cause == cache.CauseNotFound:
		return adviceOn404(given)
	case apierrors.IsMethodNotSupported(err):
		return fmt.Sprintf("the server does not let %s be %ved (405), so they cannot be mirrored", given.resource.Resource, s)
	case cause == cache.CauseTooManyRequests:
		return "it takes no more requests for now (429); try again later"
	case errors.Is(err, kubeapi.ErrAuthorize):
		return "the -token-file cannot be used"
	case errors.Is(err, kubeapi.ErrRedirect):
		return "it sends requests on to another address; if that is the right one, give it as -server"
	case notAnAPI(err):
		return "what answers there is not a Kubernetes-style API"
	case noSuchHost(err):
		return "no host has that name"
	case untrusted(err) && given.caFile != "":
		return "its certificate does not pass the check with those in the -ca-file"
	case untrusted(err):
		return "its certificate is not trusted; -ca-file names a PEM file with the certificates to trust"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks http, not https"
	case wantsHTTPS(err):
		return "it speaks https, not http; begin the -server with https://"
	}
	return "it does not answer as it should"
}

// groupOf is where well-known resources are that people ask for by their name alone.
var groupOf = map[string]string{
	"cronjobs":            "batch/v1",
	"daemonsets":          "apps/v1",
	"deployments":         "apps/v1",
	"endpointslices":      "discovery.k8s.io/v1",
	"ingresses":           "networking.k8s.io/v1",
	"jobs":                "batch/v1",
	"leases":              "coordination.k8s.io/v1",
	"networkpolicies":     "networking.k8s.io/v1",
	"replicasets":         "apps/v1",
	"rolebindings":        "rbac.authorization.k8s.io/v1",
	"roles":               "rbac.authorization.k8s.io/v1",
	"statefulsets":        "apps/v1",
	"storageclasses":      "storage.k8s.io/v1",
	"clusterroles":        "rbac.authorization.k8s.io/v1",
	"clusterrolebindings": "rbac.authorization.k8s.io/v1",
}

// adviceOn404 says how the resource may have been meant.
func adviceOn404(given settings) string {
	resource, version := given.resource.Resource, given.resource.GroupVersion().String()
	what := fmt.Sprintf("it has no %s in %s (404)", resource, version)
	if group := groupOf[resource]; group != "" && group != version {
		return fmt.Sprintf("%s; try -resource %s/%s", what, group, resource)
	}
	const otherwise = "; or the -server is not the address of an API"
	if given.resource.Group == "" {
		what += "; name a resource of an API group as group/version/resource, such as apps/v1/deployments"
	} else {
		what += "; the group, the version and the plural name must be its own, as in apps/v1/deployments"
	}
	if given.namespace != "" {
		what += "; or they belong to no namespace: leave out -namespace"
	}
	return what + otherwise
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

// wantsHTTPS says whether a request without TLS came to a port with it. Servers written
// in Go, API servers among them, answer that in words; there is no code or reason for it.
func wantsHTTPS(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "sent an HTTP request to an HTTPS server")
}

// pauseAskedBy is how long the server wants to be left alone, 0 if it does not say.
func pauseAskedBy(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}
