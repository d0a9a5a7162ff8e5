package report_test

import (
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/tools/fieldsused/internal/flow"
	"github.com/watchmirror/cache/tools/fieldsused/internal/report"
)

func TestAReadOfTheWholeObjectHasAPathInTheText(t *testing.T) {
	object := types.NewTypeName(token.NoPos, types.NewPackage("example.com/v1", "v1"), "Thing", nil)
	result := &flow.Result{Uses: []flow.Use{{
		Object: object,
		Kind:   flow.Read,
		Site:   flow.Site{File: "/program/main.go", Line: 3},
	}}}
	found, err := report.New("example.com/v1.Thing", result, "/program", nil)
	require.NoError(t, err)
	const want = `example.com/v1.Thing: 1 fields may be read
  (whole object)                               main.go:3
Fields: nil // the whole object may be read
`
	require.Equal(t, want, found.String())
}
