package jsonwire

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"
)

// pods returns different pods, so that neither a branch predictor nor a table of strings adapts to
// one.
func pods() (pods [][]byte) {
	for i := range 64 {
		pods = append(pods, podJSON(i))
	}
	return pods
}

func TestTheBenchmarksPodHasTheDocumentedSize(t *testing.T) {
	for _, pod := range pods() {
		require.InDelta(t, 10<<10, len(pod), 512)
	}
}

func BenchmarkEndOfAPod(b *testing.B) {
	pods := pods()
	b.SetBytes(int64(len(pods[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pod := pods[i%len(pods)]
		if end, whole := new(scanner).end(pod, 0); !whole || end != len(pod) {
			b.Fatal(end)
		}
	}
}

// joined returns a body that never ends.
func joined(begin, before, behind string) *endless {
	again := ""
	for _, pod := range pods() {
		again += before + string(pod) + behind
	}
	return &endless{begin: begin, again: again}
}

func BenchmarkItemOfAList(b *testing.B) {
	list := Encoding.List(joined(`{"items":[{}`, ",", ""), limits)
	b.SetBytes(int64(len(podJSON(0))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := list.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFrameOfAWatch(b *testing.B) {
	frames := Encoding.Watch(joined("", `{"type":"MODIFIED","object":`, "}\n"), limits)
	b.SetBytes(int64(len(podJSON(0))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := frames.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnstructuredPod(b *testing.B) {
	decode := func(raw []byte) error {
		_, err := Encoding.Unstructured(raw, limits)
		return err
	}
	benchmarkPods(b, decode)
}

func BenchmarkUnstructuredPodByApimachinery(b *testing.B) {
	decode := func(raw []byte) error {
		var object map[string]any
		return json.Unmarshal(raw, &object)
	}
	benchmarkPods(b, decode)
}

func BenchmarkNestingOfAPod(b *testing.B) {
	limits := limits
	limits.Nesting = 20 // low enough that brackets are counted
	decode := func(raw []byte) error {
		if nestsDeeper(raw, limits.Nesting) {
			return io.ErrShortBuffer
		}
		return nil
	}
	benchmarkPods(b, decode)
}

func BenchmarkIdentityOfAPod(b *testing.B) {
	benchmarkPods(b, func(raw []byte) error { Encoding.Identify(raw); return nil })
}

func benchmarkPods(b *testing.B, decode func([]byte) error) {
	pods := pods()
	b.SetBytes(int64(len(pods[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := decode(pods[i%len(pods)]); err != nil {
			b.Fatal(err)
		}
	}
}
