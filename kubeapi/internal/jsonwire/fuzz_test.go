package jsonwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	numbers "k8s.io/apimachinery/pkg/util/json"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// FuzzListBody reads any body as a list, whole and in pieces, and compares the result with
// encoding/json's, if that accepts the body as JSON.
func FuzzListBody(f *testing.F) {
	for _, body := range []string{
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x","remainingItemCount":3},"items":[{"a":1},null,"x"]}`,
		`{"items":null}`, `{"kind":"PodList"}`, `{"kind":"Status","code":410}`, `{"kind":"Table","items":[]}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := readList(bytes.NewReader(body), limits)
		for _, way := range wiretest.Deliveries {
			if again := readList(way(bytes.NewReader(body)), limits); !sameListing(got, again) {
				t.Fatalf("%q: %v in pieces, %v as a whole", body, again, got)
			}
		}
		want, known := modelOfList(body)
		if !known {
			return
		}
		if errors.As(got.err, new(*wire.LimitError)) {
			t.Skip("encoding/json has other limits")
		}
		if errors.Is(got.err, wire.ErrMalformed) && !utf8.Valid(body) {
			return // names that are not UTF-8 are refused: encoding/json changes them
		}
		if notList, ok := errors.AsType[*wire.NotListError](want.err); ok {
			is, ok := errors.AsType[*wire.NotListError](got.err)
			if !ok || is.Kind != notList.Kind {
				t.Fatalf("%q: %v, want %v", body, got.err, want.err)
			}
			return
		}
		if !errors.Is(got.err, want.err) || want.err == io.EOF && !sameListing(got, want) {
			t.Fatalf("%q: %v (%v), encoding/json finds %v", body, got, got.err, want)
		}
	})
}

func sameListing(a, b listing) bool {
	if (a.err == nil) != (b.err == nil) || a.err != nil && a.err.Error() != b.err.Error() {
		return false
	}
	return reflect.DeepEqual(a.items, b.items) && reflect.DeepEqual(a.header, b.header)
}

// modelOfList returns the list that encoding/json reads. known is false if it does not accept the
// body as JSON.
func modelOfList(body []byte) (want listing, known bool) {
	fields, is := fieldsOf(body)
	switch {
	case is == notJSON:
		return want, false
	case is == notObject && numbers.Unmarshal(body, new(any)) != nil && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")):
		return listing{err: wire.ErrMalformed}, true // a number that is too large
	case is == notObject:
		return listing{err: &wire.NotListError{}}, true
	}
	wanted := map[string]any{}
	for name, value := range fields {
		switch name {
		case "apiVersion", "kind", "metadata":
			var decoded any
			if len(value) > 1 || numbers.Unmarshal(value[0], &decoded) != nil {
				want.err = wire.ErrMalformed
			}
			wanted[name] = decoded
		case "items":
			var items []json.RawMessage
			if len(value) > 1 || json.Unmarshal(value[0], &items) != nil {
				want.err = wire.ErrMalformed
			}
			for _, item := range items {
				want.items = append(want.items, string(item))
			}
		}
	}
	want.header.APIVersion, _ = wanted["apiVersion"].(string)
	want.header.Kind, _ = wanted["kind"].(string)
	if want.header.Kind == "Table" || want.err != nil {
		// Which of two faults is reported depends on the order of the fields.
		return want, want.header.Kind != "Table"
	}
	if metadata, ok := wanted["metadata"].(map[string]any); !ok && wanted["metadata"] != nil || !modelOfMetadata(metadata, &want.header.ListMeta) {
		return listing{err: wire.ErrMalformed}, true
	}
	want.err = io.EOF
	if _, ok := fields["items"]; !ok && !strings.HasSuffix(want.header.Kind, "List") {
		want.err = &wire.NotListError{Kind: apiclient.Printable(want.header.Kind, apiclient.MaxForeignText)}
	}
	return want, true
}

func modelOfMetadata(metadata map[string]any, into *metav1.ListMeta) (ok bool) {
	text := func(name string) string {
		text, isText := metadata[name].(string)
		ok = ok && (isText || metadata[name] == nil)
		return text
	}
	ok = true
	into.ResourceVersion, into.Continue = text("resourceVersion"), text("continue")
	if count, isCount := metadata["remainingItemCount"].(int64); isCount {
		into.RemainingItemCount = &count
	}
	if shard, isShard := metadata["shardInfo"].(map[string]any); isShard {
		selector, _ := shard["selector"].(string)
		into.ShardInfo = &metav1.ShardInfo{Selector: selector}
	}
	return ok
}

const (
	notJSON = iota
	notObject
	anObject
)

// fieldsOf returns the fields of a JSON object as encoding/json reads them, all values of each in
// order.
func fieldsOf(body []byte) (fields map[string][]json.RawMessage, is int) {
	if !json.Valid(body) {
		return nil, notJSON
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, _ := decoder.Token(); token != json.Delim('{') {
		return nil, notObject
	}
	fields = map[string][]json.RawMessage{}
	for decoder.More() {
		name, _ := decoder.Token()
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil, notJSON
		}
		fields[name.(string)] = append(fields[name.(string)], value)
	}
	return fields, anObject
}

// FuzzWatchBody reads any body as a watch, whole and in pieces, and compares the frames with those
// that encoding/json finds, up to its first error.
func FuzzWatchBody(f *testing.F) {
	for _, body := range []string{
		`{"type":"ADDED","object":{"a":1}}` + "\n" + `{"object":{"b":[]},"type":"DELETED"} `,
		`{"type":"ADDED","object":5}{"type":"ADDED"}`, `{"type":"ERROR","code":410}`, `{"kind":"PodList"}`, `{"type":"\u0041","x":[{}],"object":{}}`, `[]`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readWatch(bytes.NewReader(body), limits)
		again, errAgain := readWatch(iotest.OneByteReader(bytes.NewReader(body)), limits)
		// A frame is complete before the following bytes are known: in pieces it may have been
		// passed on.
		early := errors.Is(err, wire.ErrMalformed) && errors.Is(errAgain, wire.ErrMalformed) && len(again) == len(got)+1
		if early {
			again, errAgain = again[:len(got)], err
		}
		if len(got)+len(again) > 0 && !reflect.DeepEqual(got, again) || err.Error() != errAgain.Error() {
			t.Fatalf("%q: %v, %v in pieces, %v, %v as a whole", body, again, errAgain, got, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		for at := 0; ; at++ {
			var raw json.RawMessage
			if wantErr := decoder.Decode(&raw); wantErr != nil {
				if wantErr == io.EOF && (err != io.EOF || len(got) != at) {
					t.Fatalf("%q: %v, %v, encoding/json reaches a good end after %d frames", body, got, err, at)
				}
				return // a frame may be accepted although encoding/json refuses it
			}
			want, ok := modelOfFrame(raw)
			if !ok {
				if !errors.Is(err, wire.ErrMalformed) && !tellsStatus(err, raw) || len(got) != at {
					t.Fatalf("%q: %v, %v, frame %d is none", body, got, err, at)
				}
				return
			}
			if at == len(got) && (early || errors.Is(err, wire.ErrMalformed) && !utf8.Valid(raw)) {
				return // names that are not UTF-8 are refused: encoding/json changes them
			}
			if at >= len(got) || got[at] != want {
				t.Fatalf("%q: %v, %v, want %v as frame %d", body, got, err, want, at)
			}
		}
	})
}

// tellsStatus reports whether an error has a Status, which an invalid frame may be.
func tellsStatus(err error, raw json.RawMessage) bool {
	notList, ok := errors.AsType[*wire.NotListError](err)
	fields, _ := fieldsOf(raw)
	var kind string
	for _, value := range fields["kind"] { // the last one applies
		kind = ""
		_ = json.Unmarshal(value, &kind)
	}
	return ok && notList.Status != nil && notList.Kind == "Status" && kind == "Status"
}

func modelOfFrame(raw json.RawMessage) (want event, ok bool) {
	fields, is := fieldsOf(raw)
	if is != anObject || len(fields["type"]) == 0 {
		return want, false
	}
	last := func(name string) json.RawMessage { return fields[name][len(fields[name])-1] }
	if json.Unmarshal(last("type"), &want.Type) != nil || want.Type == "" {
		return want, false
	}
	if len(fields["object"]) == 0 {
		return want, want.Type == "ERROR" // an error that is not understood is still one
	}
	want.Object = string(last("object"))
	return want, want.Object != "null"
}

// FuzzUnstructured compares any object with apimachinery's result, and its identity with the
// object. The identity must be the same for one item among others, if brackets show where it ends.
func FuzzUnstructured(f *testing.F) {
	for _, raw := range append(objects, others...) {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		identity := Encoding.Identify(raw)
		got, err := Encoding.Unstructured(raw, limits)
		if _, ok := err.(*wire.LimitError); ok {
			return
		}
		compare(t, raw)
		if err != nil {
			return
		}
		require.Equal(t, modelOfIdentity(got), identity)
		list := readList(io.MultiReader(strings.NewReader(`{"items":[{},`), bytes.NewReader(raw), strings.NewReader(`,{}]}`)), limits)
		require.Equal(t, io.EOF, list.err)
		require.Equal(t, []string{`{}`, strings.Trim(string(raw), " \t\r\n"), `{}`}, list.items)
	})
}

func modelOfIdentity(object map[string]any) (id wire.Identity) {
	metadata, _ := object["metadata"].(map[string]any)
	text := func(value any) string {
		text, _ := value.(string)
		if len(text) > wire.MaxName {
			return ""
		}
		return text
	}
	id.APIVersion, id.Kind = text(object["apiVersion"]), text(object["kind"])
	id.Namespace, id.Name = text(metadata["namespace"]), text(metadata["name"])
	_, isText := metadata["namespace"].(string)
	id.NamespaceUnread = id.Namespace == "" && metadata["namespace"] != nil && (!isText || metadata["namespace"] != "")
	id.UID, id.ResourceVersion = types.UID(text(metadata["uid"])), text(metadata["resourceVersion"])
	return id
}
