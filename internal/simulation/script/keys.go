package script

import (
	"fmt"
	"strings"
)

// Namespaces are the namespaces of objects. One of the names is a prefix of another.
var Namespaces = []string{"a", "ab", "b"}

// KeyAt returns a key by number.
func KeyAt(i int) string {
	return fmt.Sprintf("%s/o%d", Namespaces[i%len(Namespaces)], i/len(Namespaces))
}

// SplitKey returns the parts of a key.
func SplitKey(key string) (namespace, name string) {
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}
