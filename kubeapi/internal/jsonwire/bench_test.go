package jsonwire

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
)

func pods(n int) (pods [][]byte) {
	for i := range n {
		pods = append(pods, podJSON(i))
	}
	return pods
}

func BenchmarkSpanOfPod(b *testing.B) {
	pods := pods(64)
	b.SetBytes(int64(len(pods[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pod := pods[i%len(pods)]
		if end, whole := new(span).end(pod, 0); !whole || end != len(pod) {
			b.Fatal(end)
		}
	}
}

func BenchmarkUnstructuredPod(b *testing.B) {
	pods := pods(64)
	b.SetBytes(int64(len(pods[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := Encoding.Unstructured(pods[i%len(pods)], limits); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnstructuredPodByApimachinery(b *testing.B) {
	pods := pods(64)
	b.SetBytes(int64(len(pods[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		var object map[string]any
		if err := json.Unmarshal(pods[i%len(pods)], &object); err != nil {
			b.Fatal(err)
		}
	}
}
