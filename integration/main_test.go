package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/integration/apiserver"
)

// common is a resource of a cluster that tests leave running and healthy, each with a namespace of
// its own; other is another.
var common, other *rig

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // a server logs each connection that is cut
	code, err := withCluster(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withCluster(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "integration")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cluster, err := apiserver.Start(dir)
	if err != nil {
		return 0, err
	}
	var resources [2]schema.GroupVersionResource
	for i, plural := range []string{"things", "others"} {
		if resources[i], err = cluster.Define(context.Background(), plural); err != nil {
			return 0, errors.Join(err, cluster.Stop())
		}
	}
	common, other = &rig{cluster: cluster, resource: resources[0]}, &rig{cluster: cluster, resource: resources[1]}
	code := run()
	return code, cluster.Stop()
}
