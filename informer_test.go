package cache

import (
	"context"
	htmltemplate "html/template"
	"strings"
	"testing"
	"testing/synctest"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Generated types of several API groups have the same name, such as *v1.Event.
func TestAFailedWaitDistinguishesTypesOfTheSameNameByTheirPackage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var informers []*sharedIndexInformer
		for _, example := range []any{
			new(template.Template), new(htmltemplate.Template), new(metav1.Status),
		} {
			options := SharedIndexInformerOptions{}
			options.ReflectorOptions.Name = "informer.go:7"
			informers = append(
				informers,
				newSharedIndexInformer(ToListerWatcherWithContext(&ListWatch{}), example, options))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		const text = " has not synced: context deadline exceeded; Run was not called"
		require.EqualError(t, waitSynced(ctx, informers...), strings.Join([]string{
			"informer informer.go:7 (*text/template.Template)" + text,
			"informer informer.go:7 (*html/template.Template)" + text,
			"informer informer.go:7 (*v1.Status)" + text,
		}, "; "))
	})
}
