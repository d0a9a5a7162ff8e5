package clientgo

import (
	"mime"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

// encodingsOf returns the encodings that a client of this config accepts, the preferred one first,
// without those that kubeapi cannot decode into the objects' type. It returns nil, which means the
// default, if none is left.
func encodingsOf(content rest.ContentConfig, objectType runtime.Object) []kubeapi.Encoding {
	accepted := content.AcceptContentTypes
	if accepted == "" {
		accepted = content.ContentType
	}
	_, protobuf := objectType.(interface{ Unmarshal([]byte) error })
	var encodings []kubeapi.Encoding
	for _, clause := range clausesOf(accepted) {
		encoding := kubeapi.Encoding(clause.media)
		switch encoding {
		case kubeapi.JSON, kubeapi.CBOR:
		case kubeapi.Protobuf:
			if !protobuf {
				continue
			}
		default:
			continue
		}
		// A type may occur twice with different parameters: metadata clients accept
		// ";as=PartialObjectMetadata" and the plain type. kubeapi adds the parameters itself.
		if !slices.Contains(encodings, encoding) {
			encodings = append(encodings, encoding)
		}
	}
	return encodings
}

// clause is one media type of an Accept header with its weight.
type clause struct {
	media  string
	weight float64
}

// clausesOf parses an Accept header, the largest weight first, equal ones in order. It ignores
// invalid clauses and those with weight 0, which name types that are not accepted.
func clausesOf(accepted string) []clause {
	var clauses []clause
	for text := range strings.SplitSeq(accepted, ",") {
		media, parameters, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, ok := parameters["q"]; ok {
			weight, err = strconv.ParseFloat(q, 64)
			if err != nil || !(weight > 0) {
				continue
			}
		}
		clauses = append(clauses, clause{media, weight})
	}
	slices.SortStableFunc(clauses, func(a, b clause) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	return clauses
}
