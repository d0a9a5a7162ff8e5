//go:build unix

package cache

import (
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// queueDepth is how many objects wait when the consumer of a benchmark comes.
const queueDepth = 1000

// smallObjects are objects whose keys have to be put together.
func smallObjects() []any {
	objects := make([]any, queueDepth)
	for i := range objects {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "namespace-" + itoa(i%10), Name: "small-" + itoa(100_000+i),
			UID: types.UID("0b5c7a52-60a3-4a5e-9d4b-" + itoa(100_000+i)), ResourceVersion: itoa(i + 1),
		}}
	}
	return objects
}

// cpuTime is what the process has used, its collector included: unlike the time that
// passes, it does not count what others do on the same machine.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkDeltaFIFO is a change of each of a thousand objects in, and all of them out.
// An operation is one object; what its key costs is measured beside it.
func BenchmarkDeltaFIFO(b *testing.B) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	put := func(obj any) error { return f.Update(obj) }
	taken := 0
	batch := func(deltas []Delta, _ bool) error {
		taken += len(deltas)
		return nil
	}
	single := func(any, bool) error { return nil }
	for _, bench := range []struct {
		name string
		put  func(obj any) error
		take func() error
	}{
		{"key", func(obj any) error {
			_, err := MetaNamespaceKeyFunc(obj)
			return err
		}, func() error { return nil }},
		{"PopBatch", put, func() error { return f.PopBatch(batch, nil) }},
		{"Pop", put, func() error {
			for range queueDepth {
				if _, err := f.Pop(single); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			objects := smallObjects()
			b.ReportAllocs()
			began := cpuTime()
			for done := 0; done < b.N; done += queueDepth {
				for _, obj := range objects {
					if err := bench.put(obj); err != nil {
						b.Fatal(err)
					}
				}
				if err := bench.take(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}
