package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// fieldManager is who the API server says wrote the counts.
const fieldManager = "kubeapi-controller"

// api is the API server: reading it is kubeapi's, writing takes no more than net/http.
type api struct {
	options kubeapi.Options // how to reach it; Resource is set for each
}

// mirror returns an informer of a resource that is decoded into T.
func mirror[T cache.Object](a api, resource string, config cache.InformerConfig[T], narrow func(*kubeapi.Options)) (*cache.Informer[T], error) {
	options := a.options
	options.Resource = schema.GroupVersionResource{Version: "v1", Resource: resource}
	options.ObjectType = config.ObjectType
	if narrow != nil {
		narrow(&options)
	}
	source, err := kubeapi.New(options)
	if err != nil {
		return nil, err
	}
	config.Name = resource
	return cache.NewInformerFor(source, config), nil
}

// apply creates the config map, or makes it what is given.
func (a api) apply(ctx context.Context, object *ConfigMap) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	query := url.Values{"fieldManager": {fieldManager}, "force": {"true"}}
	_, err = a.send(ctx, http.MethodPatch, object.Namespace, object.Name, query, body)
	return err
}

// remove deletes a config map. One that is not there is removed already.
func (a api) remove(ctx context.Context, namespace, name string) error {
	code, err := a.send(ctx, http.MethodDelete, namespace, name, nil, nil)
	if code == http.StatusNotFound {
		return nil
	}
	return err
}

// send makes one request and returns the answer's code, and an error if that is none of
// success.
func (a api) send(ctx context.Context, method, namespace, name string, query url.Values, body []byte) (int, error) {
	target, err := url.JoinPath(a.options.BaseURL, "api/v1/namespaces", namespace, "configmaps", name)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, method, target+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	request.Header.Set("Accept", "application/json")
	if a.options.Authorize != nil {
		if err := a.options.Authorize(request); err != nil {
			return 0, err
		}
	}
	client := a.options.HTTPClient
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // to the end, so that the connection can be used again
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return response.StatusCode, fmt.Errorf("%s %s/%s: %s: %.200s", method, namespace, name, response.Status, text)
	}
	return response.StatusCode, err
}
