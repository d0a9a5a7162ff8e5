package clientgo_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// Fails if a way to make a source ignores the fields, or if an informer of either library does not
// accept the objects.
func TestInformersOfBothLibrariesHoldTheFieldsThatAreNamed(t *testing.T) {
	informers := map[string]func(toolscache.ListerWatcher) toolscache.SharedIndexInformer{
		"ours": func(lw toolscache.ListerWatcher) toolscache.SharedIndexInformer {
			return clientgo.NewInformer(lw, &corev1.Pod{}, 0, toolscache.Indexers{})
		},
		"client-go's": func(lw toolscache.ListerWatcher) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, toolscache.Indexers{})
		},
	}
	sources := map[string]func(*testing.T, rest.Config, kubeapi.Options) (*kubeapi.ListerWatcher, error){
		"a config": func(_ *testing.T, config rest.Config, options kubeapi.Options) (*kubeapi.ListerWatcher, error) {
			return clientgo.NewSource(&config, options)
		},
		"a client": func(t *testing.T, config rest.Config, options kubeapi.Options) (*kubeapi.ListerWatcher, error) {
			options.Resource = schema.GroupVersionResource{Resource: "pods"}
			return clientgo.NewSourceForClient(clientOf(t, config), options)
		},
	}
	for whose, newInformer := range informers {
		for of, newSource := range sources {
			t.Run(whose+", of "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
						Resources: []cachetest.Resource{
							{
								GroupVersionResource: pods,
								Kind:                 "Pod",
								Source:               podSource(t, "web-0"),
							},
						},
					}))
					t.Cleanup(server.Close)
					config := rest.Config{Host: server.URL, Transport: server.Client().Transport}
					source, err := newSource(
						t,
						config,
						kubeapi.Options{
							Resource:   pods,
							ObjectType: &corev1.Pod{},
							Fields:     []string{"spec.containers.image"},
						},
					)
					require.NoError(t, err)
					informer := newInformer(source)
					run(t, informer)
					require.True(t, informer.HasSynced())
					object, _, err := informer.GetStore().GetByKey("shop/web-0")
					require.NoError(t, err)
					require.NotNil(t, object)
					require.Equal(
						t, corev1.PodSpec{Containers: []corev1.Container{{Image: "image:"}}},
						object.(*corev1.Pod).Spec)
					fields, projected := kubeapi.ProjectedFields(object)
					require.True(t, projected)
					require.Equal(t, []string{"spec.containers.image"}, fields)
				})
			})
		}
	}
}
