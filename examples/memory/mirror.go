package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/examples/memory/inventory"
	"github.com/watchmirror/cache/footprint"
	"github.com/watchmirror/cache/kubeapi"
)

// measurement is what a mirror needs and what the program reads from it.
type measurement struct {
	report *footprint.Report
	// heap is the memory that the mirror holds after a collection.
	heap   int64
	answer string
}

// mirror mirrors the pods with these fields, or whole for none, and measures that.
func mirror(ctx context.Context, server *server, fields []string) (result measurement, err error) {
	before := heapBytes()
	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    server.URL,
		HTTPClient: server.Client(),
		Resource:   podResource,
		ObjectType: &inventory.Pod{},
		Fields:     fields,
	})
	if err != nil {
		return result, fmt.Errorf("make the source: %w", err)
	}
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*inventory.Pod]{Name: "pods"})
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- pods.Run(ctx) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ran)
	}()
	if err := pods.WaitSynced(ctx); err != nil {
		return result, err
	}
	return measure(ctx, pods, before)
}

func measure(ctx context.Context, pods *cache.Informer[*inventory.Pod], before int64) (measurement, error) {
	result := measurement{answer: inventory.Of(pods.Values()).String()}
	var err error
	result.report, err = footprint.Measure(ctx, pods, footprint.Options{})
	if err != nil {
		return result, err
	}
	result.heap = heapBytes() - before
	runtime.KeepAlive(pods)
	return result, nil
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools released
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// print prints the report's totals, fields and hints.
func (m measurement) print(out io.Writer) {
	for i, part := range strings.Split(m.report.String(), "\n\n") {
		isOther := strings.Contains(part, "  namespace\n") || strings.Contains(part, "  object\n")
		if isOther {
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, strings.TrimRight(part, "\n"))
	}
	fmt.Fprintf(out, "\nthe heap grew by %s\n", footprint.FormatBytes(m.heap))
}
