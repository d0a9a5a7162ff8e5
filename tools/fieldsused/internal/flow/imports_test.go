package flow_test

// The packages under testdata import these; go mod tidy does not see them there.
import (
	_ "github.com/watchmirror/cache"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apimachinery/pkg/api/equality"
	_ "k8s.io/utils/ptr"
)
