package kubeapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func managedFieldsOf(t *testing.T, objects []runtime.Object) (all []metav1.ManagedFieldsEntry) {
	for _, object := range objects {
		about, err := meta.Accessor(object)
		require.NoError(t, err)
		all = append(all, about.GetManagedFields()...)
	}
	return all
}

// Fails if objects keep them in some encoding or decoder, or if the status does not report where
// they were dropped.
func TestManagedFieldsAreDroppedInEachEncodingWhereTheServerSendsThem(t *testing.T) {
	own := carp.Carp{
		TypeMeta: carpType,
		ObjectMeta: metav1.ObjectMeta{
			Name:          "a",
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
	}
	bare := carp.Carp{TypeMeta: carpType, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for name, options := range map[string]Options{
		"JSON": {ObjectType: &carp.Carp{}, Encodings: []Encoding{JSON}}, "JSON, unstructured": {},
		"protobuf":           {ObjectType: &carp.Carp{}, Encodings: []Encoding{Protobuf}},
		"CBOR":               {ObjectType: &carp.Carp{}, Encodings: []Encoding{CBOR}},
		"CBOR, unstructured": {Encodings: []Encoding{CBOR}},
		"metadata": {
			ObjectType: &metav1.PartialObjectMetadata{},
			Encodings:  []Encoding{Protobuf},
		},
		"fields": {Fields: []string{"spec"}}, "fields, protobuf": {ObjectType: &carp.Carp{}, Encodings: []Encoding{Protobuf}, Fields: []string{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			encoding := JSON
			if len(options.Encodings) > 0 {
				encoding = options.Encodings[0]
			}
			for _, test := range []struct {
				own carp.Carp
				by  string
			}{{own, droppedByClient}, {bare, droppedByServer}} {
				source := newSourceOf(t, apiOf(t, []carp.Carp{test.own, bare}, encoding), options)
				require.Equal(t, "requested to be dropped", source.SourceStatus()["managedFields"])
				require.Equal(t, source.collection.String(), source.SourceStatus()["address"])
				require.Zero(t, source.LastRead())
				items, watched := everything(t, source)
				require.Empty(t, managedFieldsOf(t, append(items, watched...)))
				require.Equal(t, test.by, source.SourceStatus()["managedFields"])
				require.WithinDuration(t, time.Now(), source.LastRead(), time.Minute)
			}
			if len(options.Fields) > 0 {
				options.Fields = append(options.Fields, "metadata.managedFields")
			}
			options.KeepManagedFields = len(options.Fields) == 0
			source := newSourceOf(t, apiOf(t, []carp.Carp{own}, encoding), options)
			items, watched := everything(t, source)
			require.Len(t, managedFieldsOf(t, append(items, watched...)), 2)
			require.Equal(t, "kept", source.SourceStatus()["managedFields"])
		})
	}
}

// A server may be upgraded, or downgraded, between two watches.
func TestTheStatusFollowsAServerThatChanges(t *testing.T) {
	own := `{"metadata":{"name":"a","managedFields":[{"manager":"m"}]}}`
	bare := podJSON("a", 1)
	next := ""
	source := newSource(
		t,
		server(
			func(r *http.Request) (*http.Response, error) { return respondWith(200, podList(next))(r) },
		),
	)
	for _, test := range [][2]string{
		{own, droppedByClient}, {bare, droppedByServer}, {bare + "," + own, droppedByClient},
		{own + "," + bare, droppedByClient},
	} {
		next = test[0]
		_, err := source.List(metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, test[1], source.SourceStatus()["managedFields"])
	}
	next = ""
	_, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(
		t, droppedByClient, source.SourceStatus()["managedFields"], "an empty list shows nothing")
}

// Fails if a 406 is reported while there is a request that the server may accept, or if it is
// repeated forever.
func TestARefusedDropParameterIsOmittedAfterwards(t *testing.T) {
	for name, strict := range map[string]bool{
		"refuses the parameter": false, "refuses everything": true,
	} {
		t.Run(name, func(t *testing.T) {
			var accepts []string
			source := newSource(t, server(func(r *http.Request) (*http.Response, error) {
				accepts = append(accepts, r.Header.Get("Accept"))
				if strict || strings.Contains(accepts[len(accepts)-1], "drop=") {
					return respondWith(http.StatusNotAcceptable, "no such media type")(r)
				}
				return respondWith(
					200, podList(`{"metadata":{"name":"a","managedFields":[{"manager":"m"}]}}`))(
					r)
			}))
			for range 2 {
				list, err := source.List(metav1.ListOptions{})
				if strict {
					require.True(t, apierrors.IsNotAcceptable(err), err)
					continue
				}
				require.NoError(t, err)
				items, err := meta.ExtractList(list)
				require.NoError(t, err)
				require.Empty(t, managedFieldsOf(t, items))
			}
			require.Equal(
				t,
				[]string{
					"application/json;drop=metadata.managedFields, application/json",
					"application/json",
					"application/json",
				},
				accepts,
			)
			require.Equal(t, dropRefused, source.SourceStatus()["managedFields"])
		})
	}
}
