package sides

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	theirs "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// RemoteInformer is an Informer that can be compared with its source.
type RemoteInformer interface {
	Run(ctx context.Context)
	Get(key string) *unstructured.Unstructured
	Len() int
}

// NewRemoteInformer makes a side's informer of unstructured objects over HTTP, with the settings of a program that sets nothing.
func NewRemoteInformer(side Side, url string, client *http.Client, resource schema.GroupVersionResource) (RemoteInformer, error) {
	switch side {
	case ClientGo:
		dynamic, err := dynamic.NewForConfigAndClient(&rest.Config{Host: url, QPS: -1}, client)
		if err != nil {
			return nil, err
		}
		objects := dynamic.Resource(resource)
		source := theirs.ToListWatcherWithWatchListSemantics(
			&theirs.ListWatch{ListWithContextFunc: listing(objects), WatchFuncWithContext: objects.Watch}, dynamic)
		return theirInformer[*unstructured.Unstructured]{theirs.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, theirs.Indexers{})}, nil
	case Ours:
		source, err := kubeapi.New(kubeapi.Options{BaseURL: url, Resource: resource, HTTPClient: client})
		if err != nil {
			return nil, err
		}
		return typedInformer[*unstructured.Unstructured]{cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{})}, nil
	}
	return nil, fmt.Errorf("%q is neither %q nor %q", side, ClientGo, Ours)
}
