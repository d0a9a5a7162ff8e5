package footprint_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/footprint"
)

// printFootprint prints what the memory of an informer is spent on.
func printFootprint(ctx context.Context, pods *cache.Informer[*metav1.PartialObjectMetadata]) error {
	report, err := footprint.Measure(ctx, pods, footprint.Options{}) // an informer, a store, a reader or a snapshot
	if err != nil {
		return err
	}
	fmt.Println(report)
	return nil
}

func TestTheDocumentedCodeReportsAnInformerThatHasNotSynced(t *testing.T) {
	pods := cache.NewTypedInformer[*metav1.PartialObjectMetadata](cachetest.NewTestSource(t))
	require.ErrorContains(t, printFootprint(t.Context(), pods), "it has not synced")
}

func ExampleMeasure() {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	if err := store.Add(pod); err != nil {
		fmt.Println(err)
		return
	}
	report, err := footprint.Measure(context.Background(), store, footprint.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Objects, report.Namespaces[0].Name, report.IsExact())
	// Output: 1 shop true
}
