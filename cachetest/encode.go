package cachetest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/sharding"
)

// encodeObject encodes an object in JSON, with kind if it has none. It may change obj.
func encodeObject(obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error) {
	if obj == nil {
		return []byte("null"), nil
	}
	if _, isStatus := obj.(*metav1.Status); isStatus {
		kind = metav1.Unversioned.WithKind("Status")
	}
	if carried := obj.GetObjectKind(); carried.GroupVersionKind().Kind == "" && kind.Kind != "" {
		carried.SetGroupVersionKind(kind)
	}
	return json.Marshal(obj)
}

// encodeList encodes a list and each item with its kind. Anything else, such as a scripted answer,
// is encoded unchanged.
func encodeList(list runtime.Object, as representation) ([]byte, error) {
	kind := as.kind
	if list == nil {
		return encodeObject(nil, kind)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return encodeObject(list, kind)
	}
	items, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return encodeObject(list, kind)
	}
	head, err := encodeListHead(list, accessor, kind)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	out.WriteString(`,"items":[`)
	for i, item := range items {
		if i > 0 {
			out.WriteByte(',')
		}
		body, err := encodeObject(as.of(item), kind)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		out.Write(body)
	}
	out.WriteString("]}\n")
	return out.Bytes(), nil
}

// encodeListHead encodes a list without its items. kind is that of the items, if it is known.
func encodeListHead(
	list runtime.Object, accessor metav1.ListInterface, kind schema.GroupVersionKind,
) ([]byte, error) {
	listKind := list.GetObjectKind().GroupVersionKind()
	switch {
	case kind.Kind != "":
		listKind = kind.GroupVersion().WithKind(kind.Kind + "List")
	case listKind.Kind == "":
		listKind = metav1.Unversioned.WithKind("List")
	}
	return json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
	}{
		metav1.TypeMeta{Kind: listKind.Kind, APIVersion: listKind.GroupVersion().String()},
		metav1.ListMeta{
			ResourceVersion:    accessor.GetResourceVersion(),
			Continue:           accessor.GetContinue(),
			RemainingItemCount: accessor.GetRemainingItemCount(),
			ShardInfo:          sharding.InfoOf(list),
		},
	})
}

// encodeFrame encodes one event of a watch as a line.
func encodeFrame(event watch.Event, as representation) ([]byte, error) {
	body, err := encodeObject(as.of(event.Object), as.kind)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", event.Type, err)
	}
	frame, err := json.Marshal(struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}{event.Type, body})
	return append(frame, '\n'), err
}
