package apiserver

import (
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/benchmarks/pods"
)

// Tags of the fields that are written here: number and wire type.
const (
	typeMetaTag        = 1<<3 | 2 // of runtime.Unknown
	rawTag             = 2<<3 | 2
	contentEncodingTag = 3<<3 | 2
	contentTypeTag     = 4<<3 | 2

	listMetaTag = 1<<3 | 2 // of v1.PodList
	itemTag     = 2<<3 | 2
)

// magic begins each value in protobuf.
const magic = "k8s\x00"

// listType is the runtime.TypeMeta of a list.
var listType = appendField(appendField(nil, 1<<3|2, []byte("v1")), 2<<3|2, []byte("PodList"))

// protobuf is Kubernetes' protobuf: an envelope that names the type around the list.
type protobuf struct{ pods *pods.Encoding }

func (protobuf) mediaType(watch bool) string {
	if watch {
		return runtime.ContentTypeProtobuf + ";stream=watch"
	}
	return runtime.ContentTypeProtobuf
}

func appendHead(to []byte, tag byte, length int) []byte {
	return binary.AppendUvarint(append(to, tag), uint64(length))
}

func appendField(to []byte, tag byte, value []byte) []byte {
	return append(appendHead(to, tag, len(value)), value...)
}

func headLen(length int) int { return len(appendHead(nil, itemTag, length)) }

// envelopeEnd is what follows the list in its envelope: two empty strings.
var envelopeEnd = []byte{contentEncodingTag, 0, contentTypeTag, 0}

func (p protobuf) listBegin(to []byte, about metav1.ListMeta, page page) []byte {
	metadata, err := about.Marshal()
	if err != nil {
		panic(fmt.Sprintf("three strings and a number cannot be encoded: %v", err))
	}
	length := headLen(len(metadata)) + len(metadata)
	for i := page.from; i < page.to; i++ {
		length += headLen(p.pods.Len(i)) + p.pods.Len(i)
	}
	to = append(to, magic...)
	to = appendField(to, typeMetaTag, listType)
	to = appendHead(to, rawTag, length)
	return appendField(to, listMetaTag, metadata)
}

func (p protobuf) listItem(to []byte, i int, version uint64, _ bool) []byte {
	return p.pods.Append(appendHead(to, itemTag, p.pods.Len(i)), i, version)
}

func (protobuf) listEnd(to []byte) []byte { return append(to, envelopeEnd...) }
