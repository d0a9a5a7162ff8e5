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
	"k8s.io/apimachinery/pkg/runtime"
)

// wide is an object with lists and maps of what takes much more room than its bytes.
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

// Unmarshal does as generated code does with the fields that the tests send.
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

// worstItem repeats a part up to a number of bytes, between a beginning and an end.
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

// worstItems are items of one encoding that take the most memory for their bytes.
func worstItems(encoding Encoding, size int) map[string]struct {
	item string
	into runtime.Object
} {
	type worst = struct {
		item string
		into runtime.Object
	}
	items := map[string]worst{}
	switch encoding {
	case JSON:
		for what, of := range map[string]struct {
			path, begin, end string
			part             func(int) string
			into             runtime.Object
		}{
			"empty arrays":         {`"a":`, `[0`, `]`, always(`,[]`), nil},
			"empty objects":        {`"a":`, `[0`, `]`, always(`,{}`), nil},
			"small objects":        {`"a":`, `[0`, `]`, always(`,{"":0}`), nil},
			"numbers":              {`"a":`, `[0`, `]`, always(`,0`), nil},
			"large numbers":        {`"a":`, `[0`, `]`, always(`,999`), nil},
			"empty strings":        {`"a":`, `[0`, `]`, always(`,""`), nil},
			"names":                {`"a":`, `{"":0`, `}`, func(i int) string { return `,"` + key(i) + `":0` }, nil},
			"objects by name":      {`"a":`, `{"":0`, `}`, func(i int) string { return `,"` + key(i) + `":{"":0}` }, nil},
			"escapes":              {`"a":`, `"`, `"`, always(`\n`), nil},
			"structs":              {`"elements":`, `[{}`, `]`, always(`,{}`), &wide{}},
			"numbers for structs":  {`"elements":`, `[0`, `]`, always(`,0`), &wide{}},
			"pointers":             {`"pointers":`, `[{}`, `]`, always(`,{}`), &wide{}},
			"numbers for pointers": {`"pointers":`, `[0`, `]`, always(`,0`), &wide{}},
			"structs by name":      {`"named":`, `{"":{}`, `}`, func(i int) string { return `,"` + key(i) + `":{}` }, &wide{}},
			"quantities":           {`"resources":`, `{"":1`, `}`, func(i int) string { return `,"` + key(i) + `":1` }, &wide{}},
			"texts":                {`"texts":`, `{"":""`, `}`, func(i int) string { return `,"` + key(i) + `":""` }, &wide{}},
			"managed fields":       {`"metadata":{"name":"worst","managedFields":`, `[{}`, `]}`, always(`,{}`), &metav1.PartialObjectMetadata{}},
			"field sets":           {`"metadata":{"name":"worst","managedFields":`, `[{"fieldsV1":{"":{}`, `}}]}`, func(i int) string { return `,"` + key(i) + `":{}` }, &metav1.PartialObjectMetadata{}},
		} {
			metadata := `"metadata":{"name":"worst","namespace":"n"},`
			if strings.HasPrefix(of.path, `"metadata"`) {
				metadata = ""
			}
			items[what] = worst{worstItem(size, `{`+metadata+of.path+of.begin, of.end+`}`, of.part), of.into}
		}
	case CBOR:
		const metadata = "\x48metadata\xa1\x44name\x45worst"
		array := func(count int) string { return "\x9a" + string(binary.BigEndian.AppendUint32(nil, uint32(count))) }
		mapping := func(count int) string { return "\xba" + string(binary.BigEndian.AppendUint32(nil, uint32(count))) }
		repeated := func(into runtime.Object, field, part string) worst {
			count := (size - 100) / len(part)
			return worst{"\xa2" + metadata + string(rune(0x40+len(field))) + field + array(count) + strings.Repeat(part, count), into}
		}
		named := func(into runtime.Object, field, value string) worst {
			count := (size - 100) / (9 + len(value))
			var b strings.Builder
			for i := range count {
				b.WriteString("\x48" + key(i) + value)
			}
			return worst{"\xa2" + metadata + string(rune(0x40+len(field))) + field + mapping(count) + b.String(), into}
		}
		growing := func(into runtime.Object, field, part string) worst {
			return worst{"\xa2" + metadata + string(rune(0x40+len(field))) + field + "\x9f" + strings.Repeat(part, (size-100)/len(part)) + "\xff", into}
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
			return worst{worstItem(size, "\x0a\x07\x0a\x05worst", "", part), into}
		}
		items["structs"] = of(&wide{}, always("\x12\x00"))
		items["pointers"] = of(&wide{}, always("\x1a\x00"))
		items["structs by name"] = of(&wide{}, func(i int) string { return "\x22\x0a\x0a\x08" + key(i) })
		inMetadata := func(part func(int) string) worst {
			inner := worstItem(size-10, "\x0a\x05worst", "", part)
			return worst{"\x0a" + string(binary.AppendUvarint(nil, uint64(len(inner)))) + inner, &metav1.PartialObjectMetadata{}}
		}
		items["managed fields"] = inMetadata(always("\x8a\x01\x00"))
		items["owners"] = inMetadata(always("\x6a\x00"))
		items["finalizers"] = inMetadata(always("\x72\x00"))
		// The value of each entry claims to reach to the end of all.
		const entryBytes = 10
		count := (size - 200) / entryBytes
		items["entries beyond themselves"] = inMetadata(func(i int) string {
			beyond := max(0, count-1-i) * entryBytes
			return "\x5a\x08\x0a\x01a\x12" + string([]byte{
				byte(beyond) | 0x80, byte(beyond>>7) | 0x80, byte(beyond>>14) | 0x80, byte(beyond>>21) & 0x7f})
		})
		items["labels"] = inMetadata(func(i int) string { return "\x5a\x0a\x0a\x08" + key(i) })
	}
	return items
}

// listOfOne puts an item into the body of a list.
func listOfOne(encoding Encoding, item string) string {
	switch encoding {
	case Protobuf:
		raw := "\x12" + string(binary.AppendUvarint(nil, uint64(len(item)))) + item
		return "k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x12" + string(binary.AppendUvarint(nil, uint64(len(raw)))) + raw
	case CBOR:
		return "\xa2\x44kind\x47PodList\x45items\x81" + item
	}
	return podList(item)
}

// allocated is what taking a list of one item allocates in all, and what is taken.
func allocated(t *testing.T, encoding Encoding, item string, options Options) (int, runtime.Object) {
	body := listOfOne(encoding, item)
	options.Encodings = []Encoding{encoding}
	source := newSourceOf(t, server(func(*http.Request) (*http.Response, error) {
		return response(200, io.NopCloser(strings.NewReader(body)), "Content-Type", string(encoding)), nil
	}), options)
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	var taken runtime.Object
	_, err := source.ListItems(t.Context(), metav1.ListOptions{}, func(_ metav1.ListMeta, item runtime.Object) error {
		taken = item
		return nil
	})
	goruntime.ReadMemStats(&after)
	if err != nil {
		require.ErrorIs(t, err, ErrMalformed) // it may have been damaged on its way
	}
	return int(after.TotalAlloc - before.TotalAlloc), taken
}

// Fails without the limit: the worst items take gigabytes.
func TestNoItemTakesMoreThan256MiBWhileItIsDecoded(t *testing.T) {
	for _, encoding := range []Encoding{JSON, CBOR, Protobuf} {
		// At the limit on bytes, and where the limit on memory is just not reached.
		for _, size := range []int{15 << 20, 1 << 20, 96 << 10, 32 << 10} {
			for what, worst := range worstItems(encoding, size) {
				t.Run(fmt.Sprintf("%s/%s/%d KiB", encoding, what, size>>10), func(t *testing.T) {
					bytes, taken := allocated(t, encoding, worst.item, Options{ObjectType: worst.into})
					t.Logf("%d MiB, %d times its bytes", bytes>>20, bytes/size)
					require.Less(t, bytes, mostAllocated)
					bad, isBad := taken.(*UndecodedObject)
					switch {
					case !isBad:
						require.True(t, size < 15<<20 || what == "escapes", "an item of the worst kind is decoded")
					case what == "entries beyond themselves":
						require.ErrorIs(t, bad.Err, ErrMalformed)
					case errors.Is(bad.Err, ErrTooLarge):
						require.Equal(t, "worst", bad.Name)
						requireTooMuchMemory(t, bad)
					}
				})
			}
		}
	}
}

const mostAllocated = 256 << 20

func requireTooMuchMemory(t *testing.T, object runtime.Object) {
	t.Helper()
	require.IsType(t, &UndecodedObject{}, object)
	limit, _ := errors.AsType[*LimitError](object.(*UndecodedObject).Err)
	require.Equal(t, &LimitError{Limit: "DecodedBytes", Value: defaultDecodedBytes}, limit)
}

// A projection that goes into all of the values, whatever they are. Fails if what is left of an
// item is not charged for, or making it takes too much itself.
func TestNoProjectionOfAnItemTakesMoreThan256MiB(t *testing.T) {
	for _, encoding := range []Encoding{JSON, CBOR} {
		items := worstItems(encoding, 15<<20)
		for _, what := range []string{"numbers", "empty strings"} {
			worst := items[what]
			t.Run(fmt.Sprintf("%s/%s", encoding, what), func(t *testing.T) {
				bytes, _ := allocated(t, encoding, worst.item, Options{Fields: []string{"a.b"}})
				t.Logf("%d MiB", bytes>>20)
				require.Less(t, bytes, mostAllocated)
			})
		}
	}
	worst := worstItems(Protobuf, 15<<20)["structs"]
	bytes, taken := allocated(t, Protobuf, worst.item, Options{ObjectType: &wide{}, Fields: []string{"elements.name"}})
	t.Logf("%d MiB", bytes>>20)
	require.Less(t, bytes, mostAllocated)
	requireTooMuchMemory(t, taken)
}

// Fails if the limit is for lists alone, or ends a watch.
func TestAnEventWhoseObjectHasTooManyValuesIsUndecodedAndTheWatchGoesOn(t *testing.T) {
	worst := worstItems(JSON, 1<<20)["empty objects"].item
	body := frameJSON("ADDED", worst) + frameJSON("ADDED", podJSON("b", 2))
	watching, err := newSource(t, answers(200, body)).Watch(metav1.ListOptions{})
	require.NoError(t, err)
	defer watching.Stop()
	bad := (<-watching.ResultChan()).Object
	requireTooMuchMemory(t, bad)
	require.Equal(t, "worst", bad.(*UndecodedObject).Name)
	require.Equal(t, "b", nameOf(t, (<-watching.ResultChan()).Object))
}

// Fails if the default is too small for objects as large as there are: a hundred thousand values,
// each of which its manager owns. etcd has room for a third of them.
func TestLargeObjectsAreWithinTheDefaultLimits(t *testing.T) {
	var texts, owned strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&texts, `,"%s":"v"`, key(i))
		fmt.Fprintf(&owned, `,"f:%s":{}`, key(i))
	}
	item := `{"metadata":{"name":"large","managedFields":[{"fieldsV1":{"f:texts":{"":{}` + owned.String() + `}}}]},"texts":{"":""` + texts.String() + `}}`
	for _, into := range []runtime.Object{nil, &metav1.PartialObjectMetadata{}, &labelled{}} {
		_, taken := allocated(t, JSON, item, Options{ObjectType: into})
		require.Equal(t, "large", nameOf(t, taken))
	}
}

// labelled is of the form of a ConfigMap.
type labelled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Texts             map[string]string `json:"texts,omitempty"`
}

func (l *labelled) DeepCopyObject() runtime.Object { panic("not called") }

// Fails if the limit cannot be raised.
func TestAHigherLimitOnMemoryAdmitsALargerItem(t *testing.T) {
	item := worstItems(JSON, 1<<20)["empty objects"].item
	_, taken := allocated(t, JSON, item, Options{})
	requireTooMuchMemory(t, taken)
	_, taken = allocated(t, JSON, item, Options{Limits: Limits{DecodedBytes: 1 << 30}})
	require.Equal(t, "worst", nameOf(t, taken))
}
