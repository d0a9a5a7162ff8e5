package protowire

import (
	"testing"

	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

func BenchmarkCuttingItems(b *testing.B) {
	wiretest.BenchmarkList(b, Encoding, served(b, carps(1000)), roomy)
}
