package clientgo_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// mirrorPods returns when ctx ends.
func mirrorPods(ctx context.Context) error {
	options, err := kubeapi.InCluster() // elsewhere: kubeapi.Options{BaseURL: "http://127.0.0.1:8001"}, with kubectl proxy
	if err != nil {
		return err
	}
	options.Resource = corev1.SchemeGroupVersion.WithResource("pods")
	options.ObjectType = &corev1.Pod{} // without it: unstructured objects
	source, err := kubeapi.New(options)
	if err != nil {
		return err
	}
	pods := cache.NewTypedInformer[*corev1.Pod](source)
	_, err = pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: func(pod *corev1.Pod) { fmt.Println("added", pod.Name) },
	})
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}
