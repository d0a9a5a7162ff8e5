package protowire

import (
	"bytes"
	"io"
	"testing"
)

func BenchmarkCuttingItems(b *testing.B) {
	body := served(b, carps(1000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		list := Encoding.List(bytes.NewReader(body), roomy)
		var err error
		for err == nil {
			_, err = list.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}
