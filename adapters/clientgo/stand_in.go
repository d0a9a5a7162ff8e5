package clientgo

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// standIn is a client-go reflector with the name of one of ours, for watch error handlers, which
// read that name. It is made at the first failure, and never run.
type standIn struct {
	once      sync.Once
	reflector *toolscache.Reflector
}

func (s *standIn) of(r *cache.Reflector) *toolscache.Reflector {
	s.once.Do(func() {
		var options toolscache.ReflectorOptions
		if r != nil {
			options.Name = r.Name()
			options.TypeDescription = r.TypeDescription()
		}
		store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
		s.reflector = toolscache.NewReflectorWithOptions(noSource, nil, store, options)
	})
	return s.reflector
}

// errStandIn is returned if the stand-in is run.
var errStandIn = errors.New(
	"clientgo: this reflector only has a name; the informer's is not one of client-go's")

var noSource = &toolscache.ListWatch{
	ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, errStandIn
	},
	WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return nil, errStandIn
	},
}
