package guarantees

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/util/framer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// The damaged stream: the number of events and of objects; it follows an empty list at the
// version listed.
const (
	swept       = 50
	sweptCarps  = 20
	sweptListed = 100
)

// recoverWithin bounds the time until damage is noticed and the request is retried: 10 s for
// the rest of a frame, one second for each 8 KiB of it (the stream has 28 KiB), and the first
// pause of the backoff.
const recoverWithin = 15 * time.Second

var carps = schema.GroupVersionKind{Group: "testapigroup.apimachinery.k8s.io", Version: "v1", Kind: "Carp"}

// encoding writes as API servers do and reads as client-go does. It uses apimachinery's
// decoders, so client-go's own code decides which damage client-go notices: frames in
// rest/watch, objects in the codec of a typed or dynamic client.
type encoding struct {
	encoding   kubeapi.Encoding
	example    apiruntime.Object
	framer     apiruntime.Framer
	events     apiruntime.Decoder
	objects    apiruntime.Decoder
	writeEvent func(t testing.TB, kind watch.EventType, object *carp.Carp) []byte
}

func encodings() map[string]encoding {
	scheme := apiruntime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	metav1.AddToGroupVersion(scheme, carp.SchemeGroupVersion)
	scheme.AddKnownTypes(carp.SchemeGroupVersion, &carp.Carp{})
	inJSON := plainJSON{}
	inProtobuf, inCBOR := protobuf.NewSerializer(scheme, scheme), cbor.NewSerializer(scheme, scheme)
	typed := &carp.Carp{TypeMeta: metav1.TypeMeta{APIVersion: carps.GroupVersion().String(), Kind: carps.Kind}}
	generic := &unstructured.Unstructured{}
	generic.SetGroupVersionKind(carps)

	written := func(t testing.TB, encoder apiruntime.Encoder, object apiruntime.Object) []byte {
		var raw bytes.Buffer
		require.NoError(t, encoder.Encode(object, &raw))
		return raw.Bytes()
	}
	framed := func(framer apiruntime.Framer, events, objects apiruntime.Encoder) func(testing.TB, watch.EventType, *carp.Carp) []byte {
		return func(t testing.TB, kind watch.EventType, object *carp.Carp) []byte {
			event := &metav1.WatchEvent{Type: string(kind), Object: apiruntime.RawExtension{Raw: written(t, objects, object)}}
			raw := written(t, events, event)
			var frame bytes.Buffer
			_, err := framer.NewFrameWriter(&frame).Write(raw)
			require.NoError(t, err)
			return frame.Bytes()
		}
	}
	writeJSON := framed(jsonFrames{}, inJSON, inJSON)
	rawProtobuf, rawCBOR := protobuf.NewRawSerializer(scheme, scheme), cbor.NewSerializer(scheme, scheme, cbor.Transcode(false))
	return map[string]encoding{
		"JSON, unstructured": {kubeapi.JSON, generic, jsonFrames{}, inJSON, unstructured.UnstructuredJSONScheme, writeJSON},
		"JSON, typed":        {kubeapi.JSON, typed, jsonFrames{}, inJSON, inJSON, writeJSON},
		"protobuf": {kubeapi.Protobuf, typed, protobuf.LengthDelimitedFramer, rawProtobuf, inProtobuf,
			framed(protobuf.LengthDelimitedFramer, rawProtobuf, inProtobuf)},
		"CBOR": {kubeapi.CBOR, typed, cbor.NewFramer(), rawCBOR, inCBOR, framed(cbor.NewFramer(), rawCBOR, inCBOR)},
	}
}

// plainJSON decodes as apimachinery's JSON codec for a scheme of carps, which needs more
// modules than this one requires.
type plainJSON struct{}

func (plainJSON) Decode(raw []byte, _ *schema.GroupVersionKind, into apiruntime.Object) (apiruntime.Object, *schema.GroupVersionKind, error) {
	if into != nil {
		return into, nil, utiljson.Unmarshal(raw, into)
	}
	var about metav1.TypeMeta
	if err := utiljson.Unmarshal(raw, &about); err != nil {
		return nil, nil, err
	}
	if about.GroupVersionKind() != carps {
		return nil, nil, fmt.Errorf("no kind %q is registered for %q", about.Kind, about.APIVersion)
	}
	object := &carp.Carp{}
	return object, &carps, utiljson.Unmarshal(raw, object)
}

func (plainJSON) Encode(object apiruntime.Object, w io.Writer) error {
	return json.NewEncoder(w).Encode(object)
}

func (plainJSON) Identifier() apiruntime.Identifier { return "plainJSON" }

type jsonFrames struct{}

func (jsonFrames) NewFrameReader(r io.ReadCloser) io.ReadCloser { return framer.NewJSONFramedReader(r) }

func (jsonFrames) NewFrameWriter(w io.Writer) io.Writer { return w }

func (d encoding) contentType(watching bool) string {
	switch {
	case !watching:
		return "application/json"
	case d.encoding == kubeapi.CBOR:
		return "application/cbor-seq"
	}
	return string(d.encoding) + ";stream=watch"
}

// clientGoResult is the result of reading a damaged stream with client-go's decoders.
type clientGoResult struct {
	// events are those before the first unreadable one, with their objects as JSON.
	events []string
	// whole is true if it read the whole stream, and so noticed no damage.
	whole bool
}

func (d encoding) read(stream []byte) (v clientGoResult) {
	frames := streaming.NewDecoder(d.framer.NewFrameReader(io.NopCloser(bytes.NewReader(stream))), d.events)
	for {
		var event metav1.WatchEvent
		if _, _, err := frames.Decode(nil, &event); err != nil {
			v.whole = err == io.EOF
			return v
		}
		if !slices.Contains([]watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error}, watch.EventType(event.Type)) {
			return v
		}
		object, err := apiruntime.Decode(d.objects, event.Object.Raw)
		if err != nil {
			return v
		}
		v.events = append(v.events, event.Type+" "+textOf(object))
	}
}

// textOf returns an object as JSON.
func textOf(object any) string {
	raw, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	var content any
	if json.Unmarshal(raw, &content) != nil {
		return string(raw)
	}
	raw, _ = json.Marshal(content) // fields in one order
	return string(raw)
}

// frameHistory has the frames of a stream and the state after the last one: texts by name.
type frameHistory struct {
	frames [][]byte
	names  []string
	state  map[string]*carp.Carp
}

func newFrameHistory(t testing.TB, d encoding) frameHistory {
	h := frameHistory{state: map[string]*carp.Carp{}}
	for i := range swept {
		name := fmt.Sprintf("carp-%02d", i*7%sweptCarps)
		kind, object := watch.Added, newCarp(name, strconv.Itoa(sweptListed+1+i))
		switch known := h.state[name] != nil; {
		case known && i%5 == 4:
			kind = watch.Deleted
		case known:
			kind = watch.Modified
		}
		h.frames, h.names = append(h.frames, d.writeEvent(t, kind, object)), append(h.names, name)
		h.state[name] = object
		if kind == watch.Deleted {
			delete(h.state, name)
		}
	}
	return h
}

func (h frameHistory) truth() map[string]string {
	truth := map[string]string{}
	for name, object := range h.state {
		truth[name] = textOf(object)
	}
	return truth
}

func newCarp(name, version string) *carp.Carp {
	grace := int64(30)
	return &carp.Carp{
		TypeMeta: metav1.TypeMeta{APIVersion: carps.GroupVersion().String(), Kind: carps.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "pond", Name: name, ResourceVersion: version, UID: "0b65-" + "uid",
			CreationTimestamp: metav1.Unix(1_700_000_000, 0), Labels: map[string]string{"tier": "front", "version": version},
		},
		Spec: carp.CarpSpec{NodeName: `a "node" {of ` + version + `}`, TerminationGracePeriodSeconds: &grace, HostNetwork: true},
		Status: carp.CarpStatus{Infos: []carp.CarpInfo{{A: 1, B: "b", Data: version}, {A: 2, B: "b"}},
			Conditions: []carp.CarpCondition{{Type: "Ready", Status: "True", Message: version}}},
	}
}

// damagedAPI answers the first list with no objects at the version listed, and the first
// watch from there with a damaged stream. All later answers are correct. Streams stay open.
type damagedAPI struct {
	dialect encoding
	history frameHistory
	damaged []byte
	// apart is the time between two writes; 0 sends all frames in one.
	apart time.Duration

	mu             sync.Mutex
	lists, watches int
}

func (a *damagedAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watching := query.Get("watch") != ""
	answer := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {a.dialect.contentType(watching)}}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !watching {
		a.lists++
		answer.Body = io.NopCloser(bytes.NewReader(a.list()))
		return answer, nil
	}
	a.watches++
	after, err := strconv.Atoi(query.Get("resourceVersion"))
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	answer.Body = reader
	go a.stream(writer, a.watches == 1, min(max(after-sweptListed, 0), swept))
	return answer, nil
}

func (a *damagedAPI) list() []byte {
	list := map[string]any{"kind": "CarpList", "apiVersion": carps.GroupVersion().String(), "items": []any{}}
	version := sweptListed
	if a.lists > 1 {
		version += swept
		list["items"] = slices.Collect(maps.Values(a.history.state))
	}
	list["metadata"] = map[string]any{"resourceVersion": strconv.Itoa(version)}
	raw, _ := json.Marshal(list)
	return raw
}

// stream writes the events after the first from ones, until the reader closes.
func (a *damagedAPI) stream(writer *io.PipeWriter, damaged bool, from int) {
	frames := a.history.frames[from:]
	rest := bytes.Join(frames, nil)
	if damaged {
		rest = a.damaged
	}
	if a.apart == 0 {
		_, _ = writer.Write(rest)
		return
	}
	for _, frame := range frames {
		time.Sleep(a.apart)
		if _, err := writer.Write(rest[:len(frame)]); err != nil {
			return
		}
		rest = rest[len(frame):]
	}
}

// mirrorResult is the result of mirroring a damaged stream.
type mirrorResult struct {
	shown       map[string]string // texts by name
	firstReport time.Duration     // since the start, 0 if nothing was reported
	reports     []error
	quarantined []cache.Quarantined
}

// mirror runs a reflector on the stream for some time.
func (a *damagedAPI) mirror(t *testing.T, during time.Duration) (m mirrorResult) {
	synctest.Test(t, func(t *testing.T) {
		source, err := kubeapi.New(kubeapi.Options{
			BaseURL: "http://api.test", Resource: carps.GroupVersion().WithResource("carps"),
			ObjectType: a.dialect.example, Encodings: []kubeapi.Encoding{a.dialect.encoding},
			HTTPClient: &http.Client{Transport: a},
		})
		require.NoError(t, err)
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		quiet := klog.Logger{}
		begun := time.Now()
		var mu sync.Mutex
		reflector := cache.NewReflectorWithOptions(source, a.dialect.example, store, cache.ReflectorOptions{
			Logger: &quiet, Strategy: cache.ListUnpaged,
			ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
				mu.Lock()
				defer mu.Unlock()
				if m.reports = append(m.reports, err); len(m.reports) == 1 {
					m.firstReport = time.Since(begun)
				}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reflector.RunWithContext(ctx) })
		time.Sleep(during)
		synctest.Wait()
		m.shown = map[string]string{}
		for _, object := range store.List() {
			m.shown[object.(metav1.Object).GetName()] = textOf(object)
		}
		m.quarantined = reflector.Status().Quarantined
		cancel()
		running.Wait()
	})
	return m
}

// B24: one byte of a stream is changed, at many offsets. If client-go's decoders notice it, here
// the watch ends at the next frame, or after 10 s if there is none, with a report, and the next
// watch delivers the lost events. If they do not, the bytes are those of a possible event: that one
// object may be wrong, but no other. Fails if the reader waits forever for the end of a string or
// frame, or if a damaged object is quarantined without another request.
func TestB24ADamagedByteLosesNoLaterEvent(t *testing.T) {
	const damages = "\"{}[,7\n\x00\xff"
	places := 4 * swept
	if sampled() {
		places = swept / 2
	}
	for name, d := range encodings() {
		h := newFrameHistory(t, d)
		stream, truth := bytes.Join(h.frames, nil), h.truth()
		undamaged := d.read(stream)
		require.True(t, undamaged.whole)
		require.Len(t, undamaged.events, swept)
		for how, apart := range map[string]time.Duration{"at once": 0, "one by one": 3 * time.Second} {
			t.Run(name+", "+how, func(t *testing.T) {
				counts := map[string]int{}
				defer func() { t.Log(counts) }()
				for place := range places {
					at := (place*len(stream) + len(stream)/2) / places
					for i := range 2 {
						instead := damages[(2*place+i)%len(damages)]
						if stream[at] == instead {
							continue
						}
						damaged := bytes.Clone(stream)
						damaged[at] = instead
						api := &damagedAPI{dialect: d, history: h, damaged: damaged, apart: apart}
						got := api.mirror(t, swept*apart+recoverWithin)
						verdict := d.read(damaged)
						hit := frameAt(h.frames, at)
						what := fmt.Sprintf("%q for %q at %d, in frame %d: %q\nreports: %v", instead, stream[at], at, hit, damaged[max(0, at-30):min(at+30, len(damaged))], got.reports)
						wrong := wrongNames(truth, got.shown)
						others := slices.DeleteFunc(slices.Clone(wrong), func(name string) bool {
							return name == h.names[hit] || !slices.Contains(h.names, name) ||
								len(verdict.events) > hit && strings.Contains(verdict.events[hit], name) // its name after the damage
						})
						switch {
						case verdict.whole && slices.Equal(verdict.events, undamaged.events):
							counts["of no matter"]++
							require.Empty(t, wrong, what)
						case verdict.whole:
							counts["not to be noticed"]++
							require.Empty(t, others, what)
						default:
							require.Empty(t, wrong, what)
							if len(got.reports) == 0 {
								counts["of no matter here"]++ // such as an object without kind
								continue
							}
							counts["noticed"]++
							late := time.Duration(hit+2) * apart // when the next frame has arrived
							if hit == swept-1 || d.encoding == kubeapi.CBOR {
								late += recoverWithin - time.Second
							}
							require.LessOrEqual(t, got.firstReport, late, what)
							require.Empty(t, got.quarantined, what)
						}
					}
				}
				require.Greater(t, counts["noticed"], places/10, "the test tests nothing")
			})
		}
	}
}

// wrongNames returns the names of objects whose mirrored state is wrong.
func wrongNames(truth, shown map[string]string) (names []string) {
	for name, text := range truth {
		if shown[name] != text {
			names = append(names, name)
		}
	}
	for name := range shown {
		if _, is := truth[name]; !is {
			names = append(names, name)
		}
	}
	return names
}

// frameAt returns the index of the frame that contains an offset of the stream.
func frameAt(frames [][]byte, at int) int {
	for i, frame := range frames {
		if at -= len(frame); at < 0 {
			return i
		}
	}
	return len(frames)
}

// watchOfPieces watches a server that sends its answer in pieces, with a pause before each.
func watchOfPieces(t *testing.T, pause time.Duration, pieces []string, test func(t *testing.T, w watch.Interface)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := cachetest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i, piece := range pieces {
				if i > 0 {
					time.Sleep(pause)
				}
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
		defer server.Close()
		source, err := kubeapi.New(kubeapi.Options{BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client()})
		require.NoError(t, err)
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		test(t, w)
	})
}

// addedFrame is an encoded event.
const addedFrame = `{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"default","resourceVersion":"1"}}}` + "\n"

// B24. Fails if a stream may be silent in the middle of a frame.
func TestB24AFrameThatDoesNotEndIsGivenUp(t *testing.T) {
	watchOfPieces(t, time.Hour, []string{addedFrame, addedFrame + `{"type":"ADDED","object":{"metadata"`}, func(t *testing.T, w watch.Interface) {
		begun := time.Now()
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, time.Hour, time.Since(begun), "between two frames it may be silent")
		event := <-w.ResultChan()
		require.Equal(t, watch.Error, event.Type)
		require.Equal(t, time.Hour+10*time.Second, time.Since(begun))
		err := apierrors.FromObject(event.Object)
		require.True(t, apierrors.HasStatusCause(err, kubeapi.CauseStreamCut))
		require.ErrorContains(t, err, kubeapi.ErrStalled.Error()+": a watch frame is incomplete after 10s")
		_, open := <-w.ResultChan()
		require.False(t, open)
	})
}

// B24. Later events extend such a frame, but too slowly.
func TestB24AFrameThatGrowsByLaterEventsIsGivenUp(t *testing.T) {
	var body []string
	for range 100 {
		body = append(body, `"a":{},`)
	}
	watchOfPieces(t, time.Second, append([]string{`{"type":"ADDED","object":{`}, body...), func(t *testing.T, w watch.Interface) {
		begun := time.Now()
		require.Equal(t, watch.Error, (<-w.ResultChan()).Type)
		require.InDelta(t, 10, time.Since(begun).Seconds(), 0.1)
	})
}

// B24. Fails if a string may contain a line break.
func TestB24ALostQuoteIsNoticedAtTheEndOfItsLine(t *testing.T) {
	damaged := strings.Replace(addedFrame, `:"a"`, `:"a `, 1)
	watchOfPieces(t, time.Hour, []string{damaged}, func(t *testing.T, w watch.Interface) {
		begun := time.Now()
		event := <-w.ResultChan()
		require.Equal(t, watch.Error, event.Type)
		require.Zero(t, time.Since(begun))
		require.True(t, apierrors.HasStatusCause(apierrors.FromObject(event.Object), kubeapi.CauseBadFrame))
	})
}
