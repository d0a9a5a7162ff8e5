package kubeapi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// wide is an object with lists and maps of values that need much more memory than their bytes.
type wide struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Elements          []wideElement                `json:"elements,omitempty" protobuf:"bytes,2,rep,name=elements"`
	Pointers          []*wideElement               `json:"pointers,omitempty" protobuf:"bytes,3,rep,name=pointers"`
	Named             map[string]wideElement       `json:"named,omitempty" protobuf:"bytes,4,rep,name=named"`
	Resources         map[string]resource.Quantity `json:"resources,omitempty" protobuf:"bytes,5,rep,name=resources"`
	Texts             map[string]string            `json:"texts,omitempty" protobuf:"bytes,6,rep,name=texts"`
}

// wideElement is about as large as a container of a pod.
type wideElement struct {
	Name string      `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	Rest [130]string `json:"-"`
}

func (w *wide) DeepCopyObject() runtime.Object { panic("not called") }

// Unmarshal reads the fields that the tests send, like generated code.
func (w *wide) Unmarshal(data []byte) error {
	for len(data) > 0 {
		number := data[0] >> 3
		length, n := binary.Uvarint(data[1:])
		value := data[1+n : 1+n+int(length)]
		data = data[1+n+int(length):]
		switch number {
		case 1:
			if err := w.ObjectMeta.Unmarshal(value); err != nil {
				return err
			}
		case 2:
			w.Elements = append(w.Elements, wideElement{})
		case 3:
			w.Pointers = append(w.Pointers, &wideElement{})
		case 4:
			if w.Named == nil {
				w.Named = map[string]wideElement{}
			}
			var element wideElement
			w.Named[string(value[2:])] = element
		}
	}
	return nil
}

// worstItem repeats a part between a beginning and an end, up to a number of bytes.
func worstItem(size int, begin, end string, part func(i int) string) string {
	var b strings.Builder
	b.Grow(size)
	b.WriteString(begin)
	for i := 0; b.Len() < size-100; i++ {
		b.WriteString(part(i))
	}
	b.WriteString(end)
	return b.String()
}

func always(part string) func(int) string { return func(int) string { return part } }

func key(i int) string { return strconv.Itoa(10_000_000 + i) }

// worst is an item that needs the most memory for its size.
type worst struct {
	item func(size int) string
	into runtime.Object
}

// worstItems returns the items of one encoding.
func worstItems(encoding Encoding) map[string]worst {
	items := map[string]worst{}
	switch encoding {
	case JSON:
		for what, of := range map[string]struct {
			path, begin, end string
			part             func(int) string
			into             runtime.Object
		}{
			"empty arrays":  {`"a":`, `[0`, `]`, always(`,[]`), nil},
			"empty objects": {`"a":`, `[0`, `]`, always(`,{}`), nil},
			"small objects": {`"a":`, `[0`, `]`, always(`,{"":0}`), nil},
			"numbers":       {`"a":`, `[0`, `]`, always(`,0`), nil},
			"large numbers": {`"a":`, `[0`, `]`, always(`,999`), nil},
			"empty strings": {`"a":`, `[0`, `]`, always(`,""`), nil},
			"names": {
				`"a":`, `{"":0`, `}`, func(i int) string { return `,"` + key(i) + `":0` }, nil,
			},
			"objects by name": {
				`"a":`, `{"":0`, `}`, func(i int) string { return `,"` + key(i) + `":{"":0}` }, nil,
			},
			"escapes":              {`"a":`, `"`, `"`, always(`\n`), nil},
			"structs":              {`"elements":`, `[{}`, `]`, always(`,{}`), &wide{}},
			"numbers for structs":  {`"elements":`, `[0`, `]`, always(`,0`), &wide{}},
			"pointers":             {`"pointers":`, `[{}`, `]`, always(`,{}`), &wide{}},
			"numbers for pointers": {`"pointers":`, `[0`, `]`, always(`,0`), &wide{}},
			"structs by name": {
				`"named":`, `{"":{}`, `}`, func(i int) string { return `,"` + key(i) + `":{}` },
				&wide{},
			},
			"quantities": {
				`"resources":`, `{"":1`, `}`, func(i int) string { return `,"` + key(i) + `":1` },
				&wide{},
			},
			"texts": {
				`"texts":`, `{"":""`, `}`, func(i int) string { return `,"` + key(i) + `":""` },
				&wide{},
			},
			"managed fields": {
				`"metadata":{"name":"worst","managedFields":`, `[{}`, `]}`, always(`,{}`),
				&metav1.PartialObjectMetadata{},
			},
			"field sets": {
				`"metadata":{"name":"worst","managedFields":`, `[{"fieldsV1":{"":{}`, `}}]}`,
				func(i int) string { return `,"` + key(i) + `":{}` },
				&metav1.PartialObjectMetadata{},
			},
		} {
			metadata := `"metadata":{"name":"worst","namespace":"n"},`
			if strings.HasPrefix(of.path, `"metadata"`) {
				metadata = ""
			}
			items[what] = worst{func(size int) string {
				return worstItem(size, `{`+metadata+of.path+of.begin, of.end+`}`, of.part)
			}, of.into}
		}
	case CBOR:
		const metadata = "\x48metadata\xa1\x44name\x45worst"
		array := func(count int) string { return "\x9a" + string(binary.BigEndian.AppendUint32(nil, uint32(count))) }
		mapping := func(count int) string { return "\xba" + string(binary.BigEndian.AppendUint32(nil, uint32(count))) }
		repeated := func(into runtime.Object, field, part string) worst {
			return worst{func(size int) string {
				count := (size - 100) / len(part)
				return "\xa2" + metadata + string(
					rune(0x40+len(field))) + field + array(
					count) + strings.Repeat(
					part, count)
			}, into}
		}
		named := func(into runtime.Object, field, value string) worst {
			return worst{func(size int) string {
				count := (size - 100) / (9 + len(value))
				var b strings.Builder
				for i := range count {
					b.WriteString("\x48" + key(i) + value)
				}
				return "\xa2" + metadata + string(
					rune(0x40+len(field))) + field + mapping(
					count) + b.String()
			}, into}
		}
		growing := func(into runtime.Object, field, part string) worst {
			return worst{func(size int) string {
				return "\xa2" + metadata + string(
					rune(0x40+len(field))) + field + "\x9f" + strings.Repeat(
					part, (size-100)/len(part)) + "\xff"
			}, into}
		}
		items["empty arrays"] = repeated(nil, "a", "\x80")
		items["empty maps"] = repeated(nil, "a", "\xa0")
		items["small maps"] = repeated(nil, "a", "\xa1\x40\x00")
		items["numbers"] = repeated(nil, "a", "\x00")
		items["numbers without a count"] = growing(nil, "a", "\x00")
		items["empty strings"] = repeated(nil, "a", "\x40")
		items["names"] = named(nil, "a", "\x00")
		items["maps by name"] = named(nil, "a", "\xa1\x40\x00")
		items["structs"] = repeated(&wide{}, "elements", "\xa0")
		items["structs without a count"] = growing(&wide{}, "elements", "\xa0")
		items["numbers for structs"] = repeated(&wide{}, "elements", "\x00")
		items["pointers"] = repeated(&wide{}, "pointers", "\xa0")
		items["structs by name"] = named(&wide{}, "named", "\xa0")
		items["quantities"] = named(&wide{}, "resources", "\x411")
		items["texts"] = named(&wide{}, "texts", "\x40")
	case Protobuf:
		of := func(into runtime.Object, part func(int) string) worst {
			return worst{
				func(size int) string { return worstItem(size, "\x0a\x07\x0a\x05worst", "", part) },
				into,
			}
		}
		items["structs"] = of(&wide{}, always("\x12\x00"))
		items["pointers"] = of(&wide{}, always("\x1a\x00"))
		items["structs by name"] = of(
			&wide{}, func(i int) string { return "\x22\x0a\x0a\x08" + key(i) })
		inMetadata := func(part func(size int) func(i int) string) worst {
			return worst{func(size int) string {
				inner := worstItem(size-10, "\x0a\x05worst", "", part(size))
				return "\x0a" + string(binary.AppendUvarint(nil, uint64(len(inner)))) + inner
			}, &metav1.PartialObjectMetadata{}}
		}
		ofAnySize := func(part func(int) string) func(int) func(int) string {
			return func(int) func(int) string { return part }
		}
		items["managed fields"] = inMetadata(ofAnySize(always("\x8a\x01\x00")))
		items["owners"] = inMetadata(ofAnySize(always("\x6a\x00")))
		items["finalizers"] = inMetadata(ofAnySize(always("\x72\x00")))
		// The value of each entry claims to reach to the end of everything.
		const entryBytes = 10
		items["entries beyond themselves"] = inMetadata(func(size int) func(int) string {
			count := (size - 200) / entryBytes
			return func(i int) string {
				beyond := max(0, count-1-i) * entryBytes
				return "\x5a\x08\x0a\x01a\x12" + string([]byte{
					byte(
						beyond,
					) | 0x80, byte(beyond>>7) | 0x80, byte(beyond>>14) | 0x80, byte(beyond>>21) & 0x7f})
			}
		})
		items["labels"] = inMetadata(
			ofAnySize(func(i int) string { return "\x5a\x0a\x0a\x08" + key(i) }))
	}
	return items
}

// listOfOne returns the body of a list with one item.
func listOfOne(encoding Encoding, item string) string {
	switch encoding {
	case Protobuf:
		raw := "\x12" + string(binary.AppendUvarint(nil, uint64(len(item)))) + item
		return "k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x12" + string(
			binary.AppendUvarint(nil, uint64(len(raw)))) + raw
	case CBOR:
		return "\xa2\x44kind\x47PodList\x45items\x81" + item
	}
	return podList(item)
}

// allocated returns the bytes allocated in total to receive a list with one item, and the item.
func allocated(
	t *testing.T, encoding Encoding, item string, options Options,
) (int, runtime.Object) {
	body := listOfOne(encoding, item)
	options.Encodings = []Encoding{encoding}
	source := newSourceOf(t, server(func(*http.Request) (*http.Response, error) {
		return newResponse(
			200, io.NopCloser(strings.NewReader(body)), "Content-Type", string(encoding)), nil
	}), options)
	var received runtime.Object
	var err error
	bytes := allocatedBy(func() {
		_, err = source.ListItems(
			t.Context(),
			metav1.ListOptions{},
			func(_ metav1.ListMeta, item runtime.Object) error {
				received = item
				return nil
			},
		)
	})
	if err != nil {
		require.ErrorIs(t, err, ErrMalformed) // it may have been damaged in transit
	}
	return bytes, received
}

// allocatedBy returns the bytes that a function allocates in total, collected or not.
func allocatedBy(call func()) int {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	call()
	goruntime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// eighth scales down the tests with many kinds of items: sizes, limits and allowed allocations,
// which are proportional.
const eighth = 8

func scaled(options Options, by int) Options {
	options.Limits = Limits{
		ItemBytes:    defaultItemBytes / by,
		DecodedBytes: defaultDecodedBytes / by,
	}
	return options
}

// scaleOf is 1 for one kind of item of each encoding.
func scaleOf(what string) int {
	switch what {
	case "empty objects", "empty maps", "structs":
		return 1
	}
	return eighth
}

// Fails without the limit: the worst items need gigabytes.
func TestNoItemTakesMoreThan256MiBWhileItIsDecoded(t *testing.T) {
	for _, encoding := range []Encoding{JSON, CBOR, Protobuf} {
		for what, worst := range worstItems(encoding) {
			by := scaleOf(what)
			// At the limit of bytes, and just below the limit of memory.
			for _, size := range []int{15 << 20, 1 << 20, 96 << 10, 32 << 10} {
				t.Run(fmt.Sprintf("%s/%s/%d KiB", encoding, what, size>>10), func(t *testing.T) {
					bytes, received := allocated(
						t, encoding, worst.item(size/by),
						scaled(Options{ObjectType: worst.into}, by))
					t.Logf(
						"%d MiB, %d times its bytes (measured with 1/%d)", bytes*by>>20,
						bytes*by/size, by)
					require.Less(t, bytes, mostAllocated/by)
					bad, isBad := received.(*UndecodableObject)
					switch {
					case !isBad:
						require.True(
							t, size < 15<<20 || what == "escapes",
							"an item of the worst kind is decoded")
					case what == "entries beyond themselves":
						require.ErrorIs(t, bad.Err, ErrMalformed)
					case errors.Is(bad.Err, ErrTooLarge):
						require.Equal(t, "worst", bad.Name)
						requireTooMuchMemory(t, bad, defaultDecodedBytes/by)
					}
				})
			}
		}
	}
}

// Each byte that is not UTF-8 becomes three. Fails if the buffer of a string grows with them.
func TestNoStringTakesMoreThan256MiBWhileItIsDecoded(t *testing.T) {
	for what, part := range map[string]string{
		"no UTF-8": "\xff", "escapes": `\n`, "escapes of surrogates": `\ud800`,
		"half of it UTF-8": "ä\xff", "plain": "x",
	} {
		for how, options := range map[string]Options{
			"unstructured": {}, "a field of it": {Fields: []string{"text"}},
			"any": {ObjectType: &anything{}},
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				text := strings.Repeat(part, (15<<20)/eighth/len(part))
				bytes, received := allocated(
					t, JSON, `{"metadata":{"name":"worst"},"text":"`+text+`"}`,
					scaled(options, eighth))
				t.Logf("%d MiB (measured with 1/%d)", bytes*eighth>>20, eighth)
				require.Less(t, bytes, mostAllocated/eighth)
				require.NotEmpty(t, received)
				if object, ok := received.(*unstructured.Unstructured); ok {
					want := strings.NewReplacer(
						`\n`, "\n", `\ud800`, "\uFFFD", "\xff", "\uFFFD").Replace(
						text)
					require.True(t, object.Object["text"] == want)
				}
			})
		}
	}
}

// anything has a field of type any.
type anything struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Text              any `json:"text"`
}

func (a *anything) DeepCopyObject() runtime.Object { panic("not called") }

const mostAllocated = 256 << 20

func requireTooMuchMemory(t *testing.T, object runtime.Object, decoded int) {
	t.Helper()
	require.IsType(t, &UndecodableObject{}, object)
	limit, _ := errors.AsType[*LimitError](object.(*UndecodableObject).Err)
	require.Equal(t, &LimitError{Limit: "DecodedBytes", Value: decoded}, limit)
}

// The projection enters all values, whatever they are. Fails if the limit does not include the rest
// of an item, or if making the rest needs too much memory itself.
func TestNoProjectionOfAnItemTakesMoreThan256MiB(t *testing.T) {
	check := func(t *testing.T, encoding Encoding, what string, options Options) runtime.Object {
		item := worstItems(encoding)[what].item((15 << 20) / eighth)
		bytes, received := allocated(t, encoding, item, scaled(options, eighth))
		t.Logf("%d MiB (measured with 1/%d)", bytes*eighth>>20, eighth)
		require.Less(t, bytes, mostAllocated/eighth)
		return received
	}
	for _, encoding := range []Encoding{JSON, CBOR} {
		for _, what := range []string{"numbers", "empty strings"} {
			t.Run(
				fmt.Sprintf("%s/%s", encoding, what),
				func(t *testing.T) { check(t, encoding, what, Options{Fields: []string{"a.b"}}) })
		}
	}
	received := check(
		t, Protobuf, "structs", Options{ObjectType: &wide{}, Fields: []string{"elements.name"}})
	requireTooMuchMemory(t, received, defaultDecodedBytes/eighth)
}

// Fails if the limit applies only to lists, or if it ends a watch.
func TestAnEventWhoseObjectHasTooManyValuesIsUndecodedAndTheWatchContinues(t *testing.T) {
	worst := worstItems(JSON)["empty objects"].item(1 << 20)
	body := frameJSON("ADDED", worst) + frameJSON("ADDED", podJSON("b", 2))
	watching, err := newSource(t, respondWith(200, body)).Watch(metav1.ListOptions{})
	require.NoError(t, err)
	defer watching.Stop()
	bad := (<-watching.ResultChan()).Object
	requireTooMuchMemory(t, bad, defaultDecodedBytes)
	require.Equal(t, "worst", bad.(*UndecodableObject).Name)
	require.Equal(t, "b", nameOf(t, (<-watching.ResultChan()).Object))
}

// Fails if the default is too small for the largest real objects: a hundred thousand values, each
// with an entry of its manager. etcd has room for a third of them.
func TestLargeObjectsAreWithinTheDefaultLimits(t *testing.T) {
	var texts, owned strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&texts, `,"%s":"v"`, key(i))
		fmt.Fprintf(&owned, `,"f:%s":{}`, key(i))
	}
	item := `{"metadata":{"name":"large","managedFields":[{"fieldsV1":{"f:texts":{"":{}` + owned.String() + `}}}]},"texts":{"":""` + texts.String() + `}}`
	for _, into := range []runtime.Object{nil, &metav1.PartialObjectMetadata{}, &labelled{}} {
		_, received := allocated(t, JSON, item, Options{ObjectType: into})
		require.Equal(t, "large", nameOf(t, received))
	}
}

// labelled has the form of a ConfigMap.
type labelled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Texts             map[string]string `json:"texts,omitempty"`
}

func (l *labelled) DeepCopyObject() runtime.Object { panic("not called") }

// Fails if the limit cannot be raised.
func TestAHigherLimitOnMemoryAdmitsALargerItem(t *testing.T) {
	item := worstItems(JSON)["empty objects"].item(1 << 20)
	_, received := allocated(t, JSON, item, Options{})
	requireTooMuchMemory(t, received, defaultDecodedBytes)
	_, received = allocated(t, JSON, item, Options{Limits: Limits{DecodedBytes: 1 << 30}})
	require.Equal(t, "worst", nameOf(t, received))
}
