package sides

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// RemoteInformer is an informer that can be compared with its source.
type RemoteInformer struct {
	// Run runs it until the context ends.
	Run func(ctx context.Context)
	// List returns all objects of the store.
	List func() []any
}

// NewRemoteInformer makes a side's informer of unstructured objects over HTTP, with the
// settings of a program that sets nothing.
func NewRemoteInformer(
	side Side, url string, client *http.Client, resource schema.GroupVersionResource,
) (*RemoteInformer, error) {
	switch side {
	case ClientGo:
		all, err := dynamic.NewForConfigAndClient(&rest.Config{Host: url, QPS: -1}, client)
		if err != nil {
			return nil, err
		}
		objects := all.Resource(resource)
		lister := &theircache.ListWatch{ListWithContextFunc: listing(objects), WatchFuncWithContext: objects.Watch}
		source := theircache.ToListWatcherWithWatchListSemantics(lister, all)
		informer := theircache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, theircache.Indexers{})
		return &RemoteInformer{Run: informer.RunWithContext, List: informer.GetStore().List}, nil
	case Ours:
		source, err := kubeapi.New(kubeapi.Options{BaseURL: url, Resource: resource, HTTPClient: client})
		if err != nil {
			return nil, err
		}
		informer := ourcache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, ourcache.Indexers{})
		return &RemoteInformer{Run: informer.RunWithContext, List: informer.GetStore().List}, nil
	}
	return nil, fmt.Errorf("%q is neither %q nor %q", side, ClientGo, Ours)
}

// Versions returns the versions of its objects, by namespace and name.
func (i *RemoteInformer) Versions() map[string]string {
	versions := map[string]string{}
	for _, obj := range i.List() {
		object := obj.(metav1.Object)
		versions[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
	return versions
}
