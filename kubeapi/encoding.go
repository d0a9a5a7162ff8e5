package kubeapi

import (
	"fmt"
	"mime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/cborwire"
	"github.com/watchmirror/cache/kubeapi/internal/jsonwire"
	"github.com/watchmirror/cache/kubeapi/internal/protowire"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Encoding is a media type of objects.
type Encoding string

// The encodings.
const (
	// JSON is served by every API, for every type.
	JSON Encoding = "application/json"
	// Protobuf is served by API servers for built-in types. It takes about half the bytes, and needs a Go type with an
	// Unmarshal method, as those of k8s.io/api have.
	Protobuf Encoding = "application/vnd.kubernetes.protobuf"
	// CBOR is served where the alpha feature CBORServingAndStorage is on, for every
	// type.
	CBOR Encoding = "application/cbor"
)

// The parameters by which a server is asked for the metadata of objects alone. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
const (
	metadataOfList  = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOfWatch = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// wires are the encodings by the media types under which bodies come. Watches in CBOR
// have one of their own; the other two say "stream=watch" in a parameter.
var wires = map[string]wire.Encoding{
	string(JSON):           jsonwire.Encoding,
	string(Protobuf):       protowire.Encoding,
	string(CBOR):           cborwire.Encoding,
	"application/cbor-seq": cborwire.Encoding,
}

// encodings are those that a source offers to decode, in its order of preference.
type encodings []Encoding

// accept is the Accept header of a request. JSON is always in it, since some types have no other encoding. Metadata alone and
// drop name each type twice, for servers that do not know the parameter.
func (e encodings) accept(v verb, metadataOnly, drop bool) string {
	only := ""
	switch {
	case metadataOnly && v == verbWatch:
		only = metadataOfWatch
	case metadataOnly:
		only = metadataOfList
	}
	var types []string
	for _, encoding := range e {
		types = append(types, string(encoding)+only)
	}
	if metadataOnly || !slices.Contains(e, JSON) {
		types = append(types, string(JSON))
	}
	if drop {
		for i := range types {
			types = append(types, types[i])
			types[i] += dropManagedFields
		}
	}
	return strings.Join(types, ", ")
}

// encodingOf returns the declared encoding, or nil for another. Without a declaration it is JSON, since servers forget the
// header; parameters, also broken ones, do not count.
func (e encodings) encodingOf(declared string) wire.Encoding {
	if declared == "" {
		return jsonwire.Encoding
	}
	media, _, err := mime.ParseMediaType(declared)
	if err != nil && media == "" {
		return nil
	}
	encoding := wires[media]
	if encoding == jsonwire.Encoding || slices.ContainsFunc(e, func(offered Encoding) bool { return wires[string(offered)] == encoding }) {
		return encoding
	}
	return nil
}

// encodingsFor checks a choice of encodings for the type to be decoded into, and makes
// one where the caller has not.
func encodingsFor(chosen []Encoding, into target) (encodings, error) {
	if len(chosen) == 0 {
		if into.protobuf() {
			return encodings{Protobuf, JSON}, nil
		}
		return encodings{JSON}, nil
	}
	for i, encoding := range chosen {
		switch {
		case wires[string(encoding)] == nil || encoding == "application/cbor-seq":
			return nil, fmt.Errorf("%q is none of %q, %q and %q", encoding, JSON, Protobuf, CBOR)
		case slices.Contains(chosen[:i], encoding):
			return nil, fmt.Errorf("%q is named twice", encoding)
		case encoding == Protobuf && !into.projection.protobuf():
			return nil, fmt.Errorf("no fields of %s can be named in protobuf: its struct tags do not tell their numbers", into)
		case encoding == Protobuf && !into.protobuf():
			return nil, fmt.Errorf("%s cannot be decoded from protobuf: it has no Unmarshal method", into)
		}
	}
	return slices.Clone(chosen), nil
}

// typeOf says what an object claims to be.
func typeOf(about metav1.TypeMeta) string {
	return wire.Printable(about.APIVersion+" "+about.Kind, maxExplanation)
}
