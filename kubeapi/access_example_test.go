package kubeapi_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/watchmirror/cache/kubeapi"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// In a pod, a program mirrors the pods of its own namespace. On its author's machine it uses
// `kubectl proxy`.
func ExampleInCluster() {
	options, err := kubeapi.InCluster()
	switch {
	case errors.Is(err, kubeapi.ErrNotInCluster):
		options = kubeapi.Options{BaseURL: "http://127.0.0.1:8001", Namespace: "default"}
	case err != nil:
		fmt.Println(err)
		return
	default:
		if options.Namespace, err = kubeapi.InClusterNamespace(); err != nil {
			fmt.Println(err)
			return
		}
	}
	options.Resource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	source, err := kubeapi.New(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = source // pass it to a reflector
}

// Client certificates are part of the HTTP client, like all of TLS. If RootCAs has no CA for the
// server, the system's are used.
func ExampleOptions_clientCertificate() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{
		// Called for each new connection, so that a renewed certificate is used then.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair("client.crt", "client.key")
			return &certificate, err
		},
	}
	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    "https://10.0.0.1:6443",
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = source // pass it to a reflector
}
