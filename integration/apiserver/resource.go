package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// group is the API group of all custom resources.
const group = "integration.example.com"

// servedLimit is how long the server may take to serve a new resource, or no longer a deleted one.
const servedLimit = time.Minute

// Kind is the kind of a custom resource's objects.
func Kind(resource schema.GroupVersionResource) string {
	return strings.ToUpper(resource.Resource[:1]) + resource.Resource[1:]
}

// Define creates a custom resource with namespaces, whose objects may have any fields, and returns
// once it is served. The field spec.color can be selected.
func (c *Cluster) Define(ctx context.Context, plural string) (schema.GroupVersionResource, error) {
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	return resource, c.define(ctx, resource, Kind(resource))
}

// DefineLeases creates the resource of Lease objects, which this API server does not have: it
// serves them as a custom resource under the same path. It checks resource versions, but not the
// fields.
func (c *Cluster) DefineLeases(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	return c.define(ctx, resource, "Lease")
}

func (c *Cluster) define(ctx context.Context, resource schema.GroupVersionResource, kind string) error {
	client, err := clientset.NewForConfig(c.config)
	if err != nil {
		return err
	}
	plural := resource.Resource
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: resource.GroupResource().String(),
			// Groups of Kubernetes need it.
			Annotations: map[string]string{apiextensions.KubeAPIApprovedAnnotation: "unapproved, for tests"},
		},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: resource.Group,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
			Scope: apiextensions.NamespaceScoped,
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: resource.Version, Served: true, Storage: true, Schema: anyFields(),
				SelectableFields: []apiextensions.SelectableField{{JSONPath: ".spec.color"}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("define %s: %w", plural, err)
	}
	return c.waitServed(ctx, resource)
}

// anyFields is a schema with one named field, as selectable fields must be.
func anyFields() *apiextensions.CustomResourceValidation {
	open := ptr.To(true)
	return &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: open,
		Properties: map[string]apiextensions.JSONSchemaProps{"spec": {
			Type: "object", XPreserveUnknownFields: open,
			Properties: map[string]apiextensions.JSONSchemaProps{"color": {Type: "string"}},
		}},
	}}
}

// AddVersion adds a served version, which becomes the stored one.
func (c *Cluster) AddVersion(ctx context.Context, resource schema.GroupVersionResource, version string) error {
	client, err := clientset.NewForConfig(c.config)
	if err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	definition, err := definitions.Get(ctx, resource.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("add version %s: %w", version, err)
	}
	added := *definition.Spec.Versions[0].DeepCopy()
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Storage = false
	}
	added.Name, added.Storage = version, true
	definition.Spec.Versions = append(definition.Spec.Versions, added)
	if _, err := definitions.Update(ctx, definition, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("add version %s: %w", version, err)
	}
	resource.Version = version
	return c.waitServed(ctx, resource)
}

// Remove deletes a custom resource with all of its objects, and returns once it is not served.
func (c *Cluster) Remove(ctx context.Context, resource schema.GroupVersionResource) error {
	client, err := clientset.NewForConfig(c.config)
	if err != nil {
		return err
	}
	err = client.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, resource.GroupResource().String(), metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("remove %s: %w", resource.Resource, err)
	}
	return c.waitAnswer(ctx, resource, http.StatusNotFound)
}

// waitServed waits until lists are answered: a new resource is not found for a moment, and then too
// many requests wait for its watch cache. client-go would repeat the latter by itself, seconds
// later.
func (c *Cluster) waitServed(ctx context.Context, resource schema.GroupVersionResource) error {
	return c.waitAnswer(ctx, resource, http.StatusOK)
}

func (c *Cluster) waitAnswer(ctx context.Context, resource schema.GroupVersionResource, wanted int) error {
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	// Resource version 0 is answered by the watch cache.
	url := c.config.Host + "/apis/" + resource.Group + "/" + resource.Version + "/" + resource.Resource + "?resourceVersion=0"
	var last string
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, servedLimit, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		last = response.Status
		return response.StatusCode == wanted, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w; last answer: %s", resource.Resource, err, last)
	}
	return nil
}
