package guarantees

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// misroutedAPI is an API with two pods whose second list is another document. The watch between the two lists ends with
// an expired version.
type misroutedAPI struct {
	contentType string
	document    string

	lists, watches int
}

func (a *misroutedAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return a.list(), nil
	}
	a.watches++
	if a.watches == 1 {
		expired := `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`
		return responseOf("application/json", io.NopCloser(strings.NewReader(expired))), nil
	}
	body, writer := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
	return responseOf("application/json", body), nil
}

func (a *misroutedAPI) list() *http.Response {
	a.lists++
	if a.lists == 2 {
		return responseOf(a.contentType, io.NopCloser(strings.NewReader(a.document)))
	}
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` +
		`{"metadata":{"namespace":"a","name":"1","resourceVersion":"5"}},` +
		`{"metadata":{"namespace":"a","name":"2","resourceVersion":"6"}}]}`
	return responseOf("application/json", io.NopCloser(strings.NewReader(list)))
}

func responseOf(contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Body: body,
	}
}

// inProtobuf returns an object as API servers send it.
func inProtobuf(t *testing.T, object interface{ Marshal() ([]byte, error) }, apiVersion, kind string) string {
	raw, err := object.Marshal()
	require.NoError(t, err)
	unknown := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	envelope, err := unknown.Marshal()
	require.NoError(t, err)
	return "k8s\x00" + string(envelope)
}

// B32: a document in place of a list, from a proxy or another path of the server, is no empty list: it is reported as an
// invalid response, and the content stays. Fails if each kind that ends in "List" is accepted.
func TestB32ADocumentThatIsNoListDeletesNothing(t *testing.T) {
	inCBOR, err := direct.Marshal(map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{}})
	require.NoError(t, err)
	for name, api := range map[string]misroutedAPI{
		"resources":        {"application/json", `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`, 0, 0},
		"groups":           {"application/json", `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[]}`, 0, 0},
		"a success":        {"application/json", `{"kind":"Status","apiVersion":"v1","status":"Success","items":[]}`, 0, 0},
		"an empty List":    {"application/json", `{"kind":"List","apiVersion":"v1","metadata":{}}`, 0, 0},
		"CBOR resources":   {"application/cbor", string(inCBOR), 0, 0},
		"protobuf groups":  {"application/vnd.kubernetes.protobuf", inProtobuf(t, &metav1.APIGroupList{}, "v1", "APIGroupList"), 0, 0},
		"another resource": {"application/json", `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"70"},"items":[]}`, 0, 0},
		"protobuf another": {"application/vnd.kubernetes.protobuf", inProtobuf(t, &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "70"}}, "v1", "ServiceList"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, err := kubeapi.New(kubeapi.Options{
					BaseURL: "http://api.test", Resource: podResource, HTTPClient: &http.Client{Transport: &api},
					ObjectType: &metav1.PartialObjectMetadata{},
					Encodings:  []kubeapi.Encoding{kubeapi.JSON, kubeapi.Protobuf, kubeapi.CBOR},
				})
				require.NoError(t, err)
				m := runRecoveryMirror(t, source, nil)
				sleep(time.Minute)
				m.stop()
				assert.ElementsMatch(t, []string{"a/1", "a/2"}, m.store.ListKeys())
				assert.Contains(t, m.causes(), cache.CauseInvalidResponse)
				assert.Equal(t, 3, api.lists)
			})
		})
	}
}
