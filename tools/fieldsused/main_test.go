package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/tools/fieldsused/internal/report"
)

const podType = "k8s.io/api/core/v1.Pod"

// The list of the example, which its program uses, must be that of its code.
func TestTheListOfTheExampleIsTheAnswerForIt(t *testing.T) {
	checkedIn, err := os.ReadFile("../../examples/memory/fieldsused.json")
	require.NoError(t, err)
	want := decode(t, string(checkedIn))
	want.Memory = nil // compared with the heap by the example itself
	const pod = "github.com/watchmirror/cache/examples/memory/inventory.Pod"
	text := answer(t, "-dir", "../..", "-type", pod, "-json", "./examples/memory/inventory")
	require.Equal(t, want, decode(t, text))
}

// answer runs the command and returns what it prints.
func answer(t *testing.T, args ...string) string {
	t.Helper()
	var stdout strings.Builder
	require.NoError(t, run(args, &stdout, io.Discard))
	return stdout.String()
}

// failure runs the command, which must fail and print nothing, not even a part of an answer.
func failure(t *testing.T, args ...string) string {
	t.Helper()
	var stdout strings.Builder
	err := run(args, &stdout, io.Discard)
	require.Error(t, err)
	require.Empty(t, stdout.String())
	return err.Error()
}

func TestTheAnswerHasReadsEscapesAndTheList(t *testing.T) {
	const want = `k8s.io/api/core/v1.Pod: 7 fields may be read
  metadata.annotations[example.com/placed]     controller.go:20
  metadata.deletionTimestamp                   controller.go:13
  metadata.labels                              controller.go:13
  spec.containers (presence)                   controller.go:17
  spec.containers.image                        controller.go:18
  spec.nodeName                                controller.go:16
  status.phase                                 controller.go:27
escapes, which keep everything below their path:
  spec.affinity                                controller.go:24 passed to fmt.Sprint
Fields: []string{
	"metadata.annotations[example.com/placed]",
	"spec.affinity",
	"spec.containers.image",
	"spec.nodeName",
	"status.phase",
}
`
	require.Equal(t, want, answer(t, "-dir", "testdata/controller", "-type", podType, "."))
}

func TestAnEscapeThatIsKnownToBeHarmlessKeepsNothing(t *testing.T) {
	args := []string{"-dir", "testdata/controller", "-type", podType, "-harmless"}
	text := answer(t, append(args, "controller.go:24", ".")...)
	require.NotContains(t, text, "spec.affinity")
	text = failure(t, append(args, "controller.go:23", ".")...)
	require.Equal(t, "nothing escapes at controller.go:23", text)
}

func TestAReadThatIsAddedChangesTheAnswer(t *testing.T) {
	dir, err := os.MkdirTemp("testdata", "changed")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	source, err := os.ReadFile("testdata/controller/controller.go")
	require.NoError(t, err)
	for added, path := range map[string]string{
		"_ = pod.Spec.Hostname":             "spec.hostname",
		"_ = len(pod.Spec.Tolerations)":     "spec.tolerations.key",
		"func() { _ = pod.Status.PodIP }()": "status.podIP",
	} {
		changed := strings.Replace(string(source), "\ttext := ", "\t"+added+"\n\ttext := ", 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "controller.go"), []byte(changed), 0o600))
		found := decode(t, answer(t, "-dir", dir, "-type", podType, "-json", "."))
		require.Contains(t, found.Fields, path)
		require.Len(t, found.Fields, 6)
	}
}

func TestAFunctionOfAnotherModuleEscapesUnlessItIsFollowed(t *testing.T) {
	args := []string{"-dir", "testdata/dependency", "-type", podType, "-json"}
	found := decode(t, answer(t, append(args, ".")...))
	require.Empty(t, found.Fields)
	require.Equal(t, []report.Place{{
		Place: "dependency.go:12",
		How:   "passed to k8s.io/apimachinery/pkg/api/meta.AsPartialObjectMetadata",
	}}, found.Escapes)

	found = decode(t, answer(t, append(args, "-follow", "k8s.io/apimachinery/pkg/api/meta", ".")...))
	for _, escape := range found.Escapes {
		require.Contains(t, []string{"metadata.managedFields", "metadata.ownerReferences"}, escape.Path)
	}
	require.Equal(t, []string{
		"metadata.annotations", "metadata.managedFields", "metadata.selfLink",
	}, found.Fields)
	for _, field := range found.Reads {
		require.Equal(t, []string{"dependency.go:12"}, field.Places, field.Path)
	}
}

func TestWhatControllerRuntimeReadsOfObjectsIsKnown(t *testing.T) {
	args := []string{"-dir", "testdata/operator", "-type", "example.com/operator.Thing", "-json", "."}
	found := decode(t, answer(t, args...))
	require.Equal(t, []report.Place{{
		Place: "operator.go:29",
		How:   "passed to (sigs.k8s.io/controller-runtime/pkg/client.Client).Create",
	}}, found.Escapes)
}

func TestAModuleToFollowThatTheProgramDoesNotUseIsAnErrorWithoutAnAnswer(t *testing.T) {
	args := []string{"-dir", "testdata/dependency", "-type", podType, "-follow"}
	for _, path := range []string{"k8s.io/apimachinery/pkg/api/metta", "k8s.io/component-helpers", "strings"} {
		text := failure(t, append(args, path, ".")...)
		require.Equal(t, "-follow "+path+": the program uses no package of another module below it", text)
	}
}

func decode(t *testing.T, text string) report.Report {
	t.Helper()
	var decoded report.Report
	require.NoError(t, json.Unmarshal([]byte(text), &decoded))
	return decoded
}

func TestATypeThatIsNotUsedHasNoFields(t *testing.T) {
	text := answer(t, "-dir", "testdata/controller", "-type", "k8s.io/api/core/v1.Node", ".")
	const want = `k8s.io/api/core/v1.Node: 0 fields may be read
Fields: nil // the program does not use the type
`
	require.Equal(t, want, text)
}

func TestInvalidInputIsAnErrorWithoutAnAnswer(t *testing.T) {
	for _, test := range []struct{ typeName, packages, want string }{
		{"", ".", "-type is required"},
		{podType, "", "no packages are named"},
		{"Pod", ".", `type "Pod": want an import path`},
		{"k8s.io/api/core/v1", ".", "want an import path, a dot and a name"},
		{"k8s.io/api/core/v1.Pot", "./testdata/controller", "k8s.io/api/core/v1 has no type Pot"},
		{"k8s.io/api/core/v1.PodPhase", "./testdata/controller", "it is no struct"},
		{"k8s.io/api/apps/v1.Deployment", "./testdata/controller", "not import k8s.io/api/apps/v1"},
		{podType, "./testdata/broken", "broken.go:6:41: cannot use pod.Spec.NodeName"},
		{podType, "./testdata/nofiles", "no Go files"},
		{podType, "./testdata/nothing/...", "testdata/nothing"},
		{podType, "./testdata/nofiles/...", "no packages with Go files match ./testdata/nofiles/..."},
		{podType, "example.com/missing", "example.com/missing"},
	} {
		args := []string{"-type", test.typeName}
		if test.packages != "" {
			args = append(args, test.packages)
		}
		require.Contains(t, failure(t, args...), test.want)
	}
	text := failure(t, "-type", podType, "-dir", "testdata/missing", ".")
	require.Contains(t, text, "testdata/missing")
}

func TestAReportOfFootprintThatCannotBeReadIsAnErrorWithoutAnAnswer(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/missing.json": "read the report of footprint: open testdata/missing.json",
		"main.go":               "read the report of footprint main.go: invalid character",
		"testdata/empty.json":   "it has no bytes, no fields or no types",
		"testdata/nodes.json":   "footprint testdata/nodes.json: it is of *v1.Node, not of k8s.io/api/core/v1.Pod",
		"testdata/partial.json": "footprint testdata/partial.json: its informer had not synced",
	} {
		text := failure(t, "-type", podType, "-footprint", file, "./testdata/controller")
		require.Contains(t, text, want)
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	var stderr strings.Builder
	require.ErrorIs(t, run([]string{"-h"}, io.Discard, &stderr), flag.ErrHelp)
	require.Contains(t, stderr.String(), "fieldsused -type k8s.io/api/core/v1.Pod ./...")
}

func TestAReportOfFootprintTellsWhatTheOtherFieldsCost(t *testing.T) {
	args := []string{"-dir", "testdata/controller", "-type", podType}
	args = append(args, "-footprint", "testdata/footprint.json")
	found := decode(t, answer(t, append(args, "-json", ".")...))
	// Kept: the metadata but annotations of other keys and managed fields, the struct of the
	// containers, their images, and the affinity with all below it. Also the places of a container's
	// environment and of the status's message in these structs.
	require.Equal(t, &report.Memory{Bytes: 1000, Kept: 580}, found.Memory)
	text := answer(t, append(args, ".")...)
	const memory = "memory of all objects: 1000 bytes\n" +
		"  these fields, and those that are always kept: 580 (58 %)\n" +
		"  the other fields: 420 (42 %)\n"
	require.Contains(t, text, memory)

	typed, err := os.ReadFile("testdata/footprint.json")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "unstructured.json")
	untyped := strings.Replace(string(typed), "*v1.Pod", "*unstructured.Unstructured v1/Pod", 1)
	require.NoError(t, os.WriteFile(file, []byte(untyped), 0o600))
	text = answer(t, "-dir", "testdata/controller", "-type", podType, "-footprint", file, ".")
	require.Contains(t, text, memory, "unstructured pods have the same paths")
}
