package kubeapi

import (
	"fmt"
	"mime"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/cborwire"
	"github.com/watchmirror/cache/kubeapi/internal/jsonwire"
	"github.com/watchmirror/cache/kubeapi/internal/protowire"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Encoding is the media type of objects.
type Encoding string

// Encodings for Options.Encodings.
const (
	// JSON is supported by every API, for every type.
	JSON Encoding = "application/json"
	// Protobuf is supported by API servers for built-in types. It takes about half the bytes, and
	// needs a Go type with an Unmarshal method, such as those of k8s.io/api.
	Protobuf Encoding = "application/vnd.kubernetes.protobuf"
	// CBOR is supported, for every type, if the server's alpha feature CBORServingAndStorage is
	// enabled.
	CBOR Encoding = "application/cbor"
)

// Media type parameters that request only the metadata of objects. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
const (
	metadataOfList  = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOfWatch = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// decoders has the decoder for each media type of a body. CBOR has another media type for watches;
// JSON and protobuf use the parameter "stream=watch".
var decoders = map[string]wire.Encoding{
	string(JSON):           jsonwire.Encoding,
	string(Protobuf):       protowire.Encoding,
	string(CBOR):           cborwire.Encoding,
	"application/cbor-seq": cborwire.Encoding,
}

// encodings are the encodings that a source accepts, the preferred one first.
type encodings []Encoding

// accept returns the Accept header of a request. It always contains JSON, since some types have no
// other encoding. With metadataOnly or drop each type is listed twice, once without the parameter
// for servers that do not know it.
func (e encodings) accept(v verb, metadataOnly, drop bool) string {
	parameters := ""
	switch {
	case metadataOnly && v == verbWatch:
		parameters = metadataOfWatch
	case metadataOnly:
		parameters = metadataOfList
	}
	var types []string
	for _, encoding := range e {
		types = append(types, string(encoding)+parameters)
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

// forContentType returns the decoder for a Content-Type, or nil for an unknown one. Without a
// Content-Type it is JSON, since some servers omit the header. Parameters are ignored, even
// malformed ones.
func (e encodings) forContentType(contentType string) wire.Encoding {
	if contentType == "" {
		return jsonwire.Encoding
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil && mediaType == "" {
		return nil
	}
	encoding := decoders[mediaType]
	if encoding == jsonwire.Encoding ||
		slices.ContainsFunc(
			e, func(offered Encoding) bool { return decoders[string(offered)] == encoding }) {
		return encoding
	}
	return nil
}

// encodingsFor validates the chosen encodings for the target type, and returns the default if none
// is chosen.
func encodingsFor(chosen []Encoding, into target) (encodings, error) {
	if len(chosen) == 0 {
		if into.protobuf() {
			return encodings{Protobuf, JSON}, nil
		}
		return encodings{JSON}, nil
	}
	for i, encoding := range chosen {
		switch {
		case decoders[string(encoding)] == nil || encoding == "application/cbor-seq":
			return nil, fmt.Errorf("%q is not one of %q, %q and %q", encoding, JSON, Protobuf, CBOR)
		case slices.Contains(chosen[:i], encoding):
			return nil, fmt.Errorf("%q is listed twice", encoding)
		case encoding == Protobuf && !into.projection.protobuf():
			return nil, fmt.Errorf(
				"fields of %s cannot be selected in protobuf: its struct tags lack field numbers",
				into)
		case encoding == Protobuf && !into.protobuf():
			return nil, fmt.Errorf(
				"%s cannot be decoded from protobuf: it has no Unmarshal method", into)
		}
	}
	return slices.Clone(chosen), nil
}

// printableType returns the apiVersion and kind that an object claims to have, printable.
func printableType(typeMeta metav1.TypeMeta) string {
	return apiclient.Printable(typeMeta.APIVersion+" "+typeMeta.Kind, maxForeignText)
}
