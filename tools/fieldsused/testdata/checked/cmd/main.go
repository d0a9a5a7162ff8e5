// Command cmd imports the packages. What they have reported is not reported again.
package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/tools/fieldsused/testdata/checked/reader"
	"github.com/watchmirror/cache/tools/fieldsused/testdata/checked/sibling"
)

func main() {
	_ = reader.Options()
	_ = sibling.HostIP(&corev1.Pod{})
}
