package kubeapi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
)

// ErrNotInCluster: the program does not run in a pod with a service account; the text names the missing variable or
// file. Outside of a cluster, fill in Options; in a pod, check automountServiceAccountToken.
var ErrNotInCluster = errors.New("kubeapi: not in a cluster")

// InCluster returns Options for the API of the cluster in whose pod the program runs, with the rights of the pod's
// service account: BaseURL, HTTPClient and Authorize. Set Resource, and Namespace if the rights are limited to one.
// Token and CA file may be replaced while the program runs. Sources share connections if they are made from the same
// Options.
//
// It sends nothing. Without a pod's variables or files the error wraps ErrNotInCluster. See
// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
func InCluster() (Options, error) { return thisPod.options() }

// InClusterNamespace returns the namespace of the program's pod, with the errors of InCluster.
func InClusterNamespace() (string, error) { return thisPod.namespace() }

// thisPod is where Kubernetes puts what a pod is to know.
var thisPod = pod{
	dir:    "/var/run/secrets/kubernetes.io/serviceaccount",
	getenv: os.Getenv,
}

// pod is what a program in a pod can learn of its cluster.
type pod struct {
	dir    string
	getenv func(string) string
}

// The variables that every container gets.
const (
	variableHost = "KUBERNETES_SERVICE_HOST"
	variablePort = "KUBERNETES_SERVICE_PORT"
)

func (p pod) options() (Options, error) {
	base, err := p.baseURL()
	if err != nil {
		return Options{}, err
	}
	token := p.file("token")
	if _, err := readToken(token); err != nil {
		return Options{}, p.unusable(err)
	}
	client, err := ClientWithCA(p.file("ca.crt"))
	if err != nil {
		return Options{}, p.unusable(err)
	}
	return Options{BaseURL: base, HTTPClient: client, Authorize: BearerTokenFile(token)}, nil
}

func (p pod) baseURL() (string, error) {
	host, port := p.getenv(variableHost), p.getenv(variablePort)
	for _, variable := range []struct{ name, value string }{{variableHost, host}, {variablePort, port}} {
		if variable.value == "" {
			return "", fmt.Errorf("%w: %s is not set", ErrNotInCluster, variable.name)
		}
	}
	base := (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}).String()
	if _, err := parseBaseURL(base); err != nil {
		return "", fmt.Errorf("kubeapi: %s %q and %s %q are no host and port", variableHost, host, variablePort, port)
	}
	return base, nil
}

func (p pod) namespace() (string, error) {
	path := p.file("namespace")
	data, err := readCredential(path)
	if err != nil {
		return "", p.unusable(fmt.Errorf("namespace: %w", err))
	}
	name := string(bytes.TrimSpace(data))
	if name == "" {
		return "", fmt.Errorf("kubeapi: namespace: %s is empty", path)
	}
	if err := namespaceName(name); err != nil {
		return "", fmt.Errorf("kubeapi: namespace: %s holds %w", path, err)
	}
	return name, nil
}

func (p pod) file(name string) string { return filepath.Join(p.dir, name) }

// unusable is the error for one of the files: that there is none is the sign of not being
// in a pod, anything else is a fault of the pod's.
func (p pod) unusable(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotInCluster, err)
	}
	return fmt.Errorf("kubeapi: %w", err)
}
