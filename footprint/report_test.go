package footprint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/footprint"
)

// sample is a report with a value in each field.
var sample = footprint.Report{
	Name:            "pods",
	ResourceVersion: "17",
	Objects:         20_000,
	Sampled:         1_000,
	Bytes:           100 << 20,
	MarginBytes:     1 << 20,
	TableBytes:      2 << 20,
	BacklogBytes:    80,
	PerObject:       footprint.Sizes{Mean: 5243, P50: 5000, P99: 9000, Max: 70_000},
	Largest:         []footprint.Object{{Key: "shop/web-1", Bytes: 70_000}},
	Namespaces:      []footprint.Share{{Name: "shop", Objects: 20_000, Bytes: 100 << 20}},
	Types:           []footprint.Share{{Name: "*v1.Pod", Objects: 20_000, Bytes: 100 << 20}},
	Fields: []footprint.Field{
		{Path: "metadata.managedFields", Bytes: 31 << 20, OwnBytes: 1 << 20, EmptyBytes: 24},
		{Path: "spec", Bytes: 12 << 20},
	},
	Hints: []string{"drop something"},
}

func TestTheTextOfAReportHasItsTotalsTablesAndHints(t *testing.T) {
	want := strings.Join([]string{
		"pods: 20000 objects, 100 MiB",
		"each: mean 5.12 KiB, p50 4.88 KiB, p99 8.79 KiB, largest 68.4 KiB",
		"beside them: table and indexes 2.00 MiB, backlogs of handlers 80 B",
		"estimated from a sample of 1000: within 1.00 MiB in 95 of 100 samples, less if objects share memory",
		"",
		"     bytes   share  field",
		"  31.0 MiB  31.0 %  metadata.managedFields",
		"  12.0 MiB  12.0 %  spec",
		"",
		"    bytes    share  namespace",
		"  100 MiB  100.0 %  shop",
		"",
		"    bytes    share  type",
		"  100 MiB  100.0 %  *v1.Pod",
		"",
		"     bytes  share  object",
		"  68.4 KiB  0.1 %  shop/web-1",
		"",
		"- drop something",
	}, "\n")
	assert.Equal(t, want, sample.String())
}

func TestAReportIsTheSameAfterItWasEncodedAsJSON(t *testing.T) {
	text, err := json.Marshal(sample)
	require.NoError(t, err)
	var decoded footprint.Report
	require.NoError(t, json.Unmarshal(text, &decoded))
	assert.Equal(t, sample, decoded)
	assert.Contains(t, string(text),
		`{"path":"metadata.managedFields","bytes":32505856,"ownBytes":1048576,"emptyBytes":24}`)
}

func TestAReportFindsAFieldByItsPath(t *testing.T) {
	spec, found := sample.Field("spec")
	assert.True(t, found)
	assert.Equal(t, int64(12<<20), spec.Bytes)
	_, found = sample.Field("status")
	assert.False(t, found)
}
