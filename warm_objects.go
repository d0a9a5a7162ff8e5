package cache

import (
	"runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// warmObjects reads what some objects, up to so many as are written directly, say of
// themselves, so that nobody waits for each of them later: what has just been decoded is not
// in the processor's cache any more, and what has been stored for long is not there yet. Such
// a read takes a tenth of a microsecond and more, and the processor waits for many at once,
// but only if they are within some hundred instructions: so the texts are looked up first,
// and then read one after the other.
//
// An object's methods may panic; what they say then comes out where it is needed.
func warmObjects(objects int, at func(int) any) {
	var texts [4 * directly]string
	defer func() { _ = recover() }()
	for i := range min(objects, directly) {
		if object, ok := at(i).(metav1.Object); ok {
			texts[4*i], texts[4*i+1] = object.GetResourceVersion(), string(object.GetUID())
			texts[4*i+2], texts[4*i+3] = object.GetName(), object.GetNamespace()
		}
	}
	sum := byte(0)
	for i := range texts[:4*min(objects, directly)] {
		if text := texts[i]; text != "" {
			sum += text[0]
		}
	}
	runtime.KeepAlive(sum) // so that nobody finds out that it is for nothing
}
