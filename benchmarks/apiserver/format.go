package apiserver

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// format is how lists are encoded. All methods append to what they are given and may be
// called concurrently.
type format interface {
	mediaType(watch bool) string

	listBegin(to []byte, about metav1.ListMeta, p page) []byte
	listItem(to []byte, i int, version uint64, first bool) []byte
	listEnd(to []byte) []byte
}
