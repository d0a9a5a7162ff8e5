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

	"github.com/watchmirror/cache/internal/apiclient"
)

// ErrNotInCluster: the program does not run in a pod with a service account; the text names the
// missing variable or file. Outside of a cluster, fill in Options. In a pod, check
// automountServiceAccountToken.
var ErrNotInCluster = errors.New("kubeapi: not in a cluster")

// InCluster returns Options for the API of the cluster in which the program runs as a pod, with the
// permissions of the pod's service account: BaseURL, HTTPClient and Authorize. Set Resource, and
// Namespace if the permissions are limited to one. The token and CA file may be replaced while the
// program runs. Sources made from the same Options share connections.
//
// It sends nothing. If the pod's variables or files are missing, the error wraps ErrNotInCluster.
// See https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
func InCluster() (Options, error) { return thisPod.options() }

// InClusterNamespace returns the namespace of the program's pod. Its errors are those of InCluster.
func InClusterNamespace() (string, error) { return thisPod.namespace() }

// thisPod reads the files and variables that Kubernetes sets in a pod.
var thisPod = pod{
	dir:    "/var/run/secrets/kubernetes.io/serviceaccount",
	getenv: os.Getenv,
}

// pod reads the service account's files in dir and the environment.
type pod struct {
	dir    string
	getenv func(string) string
}

// Environment variables that Kubernetes sets in every container.
const (
	hostVariable = "KUBERNETES_SERVICE_HOST"
	portVariable = "KUBERNETES_SERVICE_PORT"
)

func (p pod) options() (Options, error) {
	base, err := p.baseURL()
	if err != nil {
		return Options{}, err
	}
	token := p.file("token")
	if _, err := readToken(token); err != nil {
		return Options{}, p.fileError(err)
	}
	client, err := ClientWithCA(p.file("ca.crt"))
	if err != nil {
		return Options{}, p.fileError(err)
	}
	return Options{BaseURL: base, HTTPClient: client, Authorize: BearerTokenFile(token)}, nil
}

// variable returns the value of an environment variable, which must not be empty.
func (p pod) variable(name string) (string, error) {
	value := p.getenv(name)
	if value == "" {
		return "", fmt.Errorf("%w: %s is not set", ErrNotInCluster, name)
	}
	return value, nil
}

func (p pod) baseURL() (string, error) {
	host, err := p.variable(hostVariable)
	if err != nil {
		return "", err
	}
	port, err := p.variable(portVariable)
	if err != nil {
		return "", err
	}
	base := (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}).String()
	if _, err := apiclient.ParseBaseURL(base); err != nil {
		return "", fmt.Errorf(
			"kubeapi: %s %q and %s %q are not a host and port",
			hostVariable, host, portVariable, port)
	}
	return base, nil
}

func (p pod) namespace() (string, error) {
	path := p.file("namespace")
	data, err := readCredential(path)
	if err != nil {
		return "", p.fileError(fmt.Errorf("namespace: %w", err))
	}
	name := string(bytes.TrimSpace(data))
	if name == "" {
		return "", fmt.Errorf("kubeapi: namespace: %s is empty", path)
	}
	if err := apiclient.Namespace(name); err != nil {
		return "", fmt.Errorf("kubeapi: namespace: %s contains %w", path, err)
	}
	return name, nil
}

func (p pod) file(name string) string { return filepath.Join(p.dir, name) }

// fileError returns the error for a file. A missing file means that the program is not in a pod;
// any other failure is a fault of the pod.
func (p pod) fileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotInCluster, err)
	}
	return fmt.Errorf("kubeapi: %w", err)
}
