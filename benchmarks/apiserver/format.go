package apiserver

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// format is how lists and watches are encoded. All methods append to what they are given
// and may be called concurrently.
type format interface {
	mediaType(watch bool) string

	listBegin(to []byte, about metav1.ListMeta, p page) []byte
	listItem(to []byte, i int, version uint64, first bool) []byte
	listEnd(to []byte) []byte

	event(to []byte, kind string, i int, version uint64) []byte
	// bookmark is the one that ends the initial events.
	bookmark(to []byte, version uint64) []byte
}
