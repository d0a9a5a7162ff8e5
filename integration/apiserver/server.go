package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// serverStartLimit is how long an API server may take until it is healthy.
const serverStartLimit = 2 * time.Minute

// server is a running API server.
type server struct {
	listener *listener
	stopRun  context.CancelFunc
	ended    chan error
}

// everyone authenticates each request as an administrator.
func everyone(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: "integration", Groups: []string{user.SystemPrivilegedGroup}}}, true, nil
}

// startServer returns when the server is healthy. Its certificate, in dir, is made once.
func startServer(dir, address, etcdURL string) (*server, *rest.Config, error) {
	l, err := listen(address)
	if err != nil {
		return nil, nil, err
	}
	api, config, err := newServer(dir, etcdURL, l)
	if err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("make the API server: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{listener: l, stopRun: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- api.GenericAPIServer.PrepareRun().RunWithContext(ctx) }()
	if err := s.waitHealthy(config); err != nil {
		return nil, nil, errors.Join(err, s.stop())
	}
	return s, config, nil
}

func newServer(dir, etcdURL string, l *listener) (*apiserver.CustomResourceDefinitions, *rest.Config, error) {
	o := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	recommended := o.RecommendedOptions
	recommended.Authentication, recommended.Authorization, recommended.CoreAPI, recommended.Admission = nil, nil, nil, nil
	recommended.Features.EnablePriorityAndFairness = false
	recommended.Etcd.StorageConfig.Transport.ServerList = []string{etcdURL}
	recommended.Etcd.StorageConfig.CompactionInterval = 0 // the tests compact
	serving := recommended.SecureServing
	serving.Listener, serving.BindPort = l, l.Addr().(*net.TCPAddr).Port
	serving.ServerCert.CertDirectory, serving.ServerCert.PairName = filepath.Join(dir, "certificate"), "server"
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, nil, err
	}
	if err := o.Complete(); err != nil {
		return nil, nil, err
	}
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	if err := o.ServerRunOptions.ApplyTo(&generic.Config); err != nil {
		return nil, nil, err
	}
	if err := recommended.ApplyTo(generic); err != nil {
		return nil, nil, err
	}
	if err := o.APIEnablement.ApplyTo(&generic.Config, apiserver.DefaultAPIResourceConfigSource(), apiserver.Scheme); err != nil {
		return nil, nil, err
	}
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, openapinamer.NewDefinitionNamer(apiserver.Scheme))
	generic.Authentication.Authenticator = authenticator.RequestFunc(everyone)
	config := apiserver.Config{GenericConfig: generic, ExtraConfig: apiserver.ExtraConfig{
		CRDRESTOptionsGetter: options.NewCRDRESTOptionsGetter(*recommended.Etcd, generic.ResourceTransformers, generic.StorageObjectCountTracker),
		ServiceResolver:      webhook.NewDefaultServiceResolver(),
		AuthResolverWrapper:  webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, generic.LoopbackClientConfig, noop.NewTracerProvider()),
	}}
	api, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, nil, err
	}
	return api, &rest.Config{
		Host:            "https://" + l.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAFile: serving.ServerCert.CertKey.CertFile},
		QPS:             -1,
	}, nil
}

func (s *server) waitHealthy(config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	last := errors.New("it was not asked")
	for begin := time.Now(); time.Since(begin) < serverStartLimit; time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("run the API server: %w", err)
		default:
		}
		response, err := client.Get(config.Host + "/readyz")
		if last = err; err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		last = errors.New(response.Status)
	}
	return fmt.Errorf("wait for a healthy API server: %w", last)
}

// stop cuts all connections and waits for the end of the run.
func (s *server) stop() error {
	s.stopRun()
	s.listener.cut()
	if err := <-s.ended; err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}
