package local

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// perNamespace is how many objects a namespace has.
const perNamespace = 1000

// Object makes object i as it is at a version, with so many bytes of data of its own.
func Object(i int, version uint64, size int) *corev1.ConfigMap {
	name := fmt.Sprintf("settings-%06d", i)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            name,
		Namespace:       namespaceOf(i),
		UID:             types.UID("uid-" + name),
		ResourceVersion: strconv.FormatUint(version, 10),
	}}
	if size > 0 {
		object.Data = map[string]string{"settings": strings.Repeat("x", size)}
	}
	return object
}

// Key is where object i is in a store.
func Key(i int) string { return fmt.Sprintf("%s/settings-%06d", namespaceOf(i), i) }
