package apiserver

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/benchmarks/pods"
)

// text is JSON, with the fields in the order in which API servers write them: items of
// a list say nothing of their type, objects of events begin with it.
type text struct{ pods *pods.Encoding }

func (text) mediaType(bool) string { return "application/json" }

func (text) listBegin(to []byte, about metav1.ListMeta, _ page) []byte {
	metadata, err := json.Marshal(about)
	if err != nil {
		panic(fmt.Sprintf("three strings and a number are not JSON: %v", err))
	}
	to = append(to, `{"kind":"PodList","apiVersion":"v1","metadata":`...)
	to = append(to, metadata...)
	return append(to, `,"items":[`...)
}

func (t text) listItem(to []byte, i int, version uint64, first bool) []byte {
	if !first {
		to = append(to, ',')
	}
	return t.pods.Append(to, i, version)
}

func (text) listEnd(to []byte) []byte { return append(to, "]}\n"...) }

// typeFields take the place of an object's opening brace.
const typeFields = `{"kind":"Pod","apiVersion":"v1",`

func (t text) event(to []byte, kind string, i int, version uint64) []byte {
	to = append(to, `{"type":"`...)
	to = append(to, kind...)
	to = append(to, `","object":`...)
	to = append(to, typeFields[:len(typeFields)-1]...)
	brace := len(to)
	to = t.pods.Append(to, i, version)
	to[brace] = ','
	return append(to, "}\n"...)
}

// bookmark is the one that ends the initial events.
func (text) bookmark(to []byte, version uint64) []byte {
	return fmt.Appendf(to, `{"type":"BOOKMARK","object":%s"metadata":{"resourceVersion":%q,"annotations":{%q:"true"}},"spec":{"containers":null},"status":{}}}`+"\n",
		typeFields, pods.Version(version), metav1.InitialEventsAnnotationKey)
}
