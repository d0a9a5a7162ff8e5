package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestChangesBeyondTheLimitOfASecondAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		show := newDisplay(&out)
		for i := range 20 {
			show.delta(green, "+", fmt.Sprintf("a/pod-%d", i), "Pending", "1")
		}
		require.Equal(t, deltaLines, strings.Count(out.String(), "\n"))
		show.tick()
		require.NotContains(t, out.String(), "more", "the second is not over")

		time.Sleep(time.Second)
		show.tick()
		require.Contains(t, out.String(), fmt.Sprintf("… and %d more\n", 20-deltaLines))
		show.delta(green, "+", "a/late", "Pending", "1")
		require.Contains(t, out.String(), "a/late", "a new second has its own lines")
	})
}

func TestOmittedChangesAreReportedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		show := newDisplay(&out)
		for range deltaLines + 1 {
			show.delta(green, "+", "a/pod", "Pending", "1")
		}
		show.tell(plain, "·", "hello")
		require.Less(t, strings.Index(out.String(), "… and 1 more"), strings.Index(out.String(), "hello"))
	})
}

func TestLongTextsAreBrokenIntoLinesThatFit(t *testing.T) {
	var out bytes.Buffer
	show := newDisplay(&out)
	show.tell(red, "✗", "%s", strings.Repeat("word ", 60))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(line)), width)
	}
	require.Equal(t, 60, strings.Count(out.String(), "word"))
	require.Equal(t, "abc…", fit("abcdef", 4))
	require.Equal(t, "ab  ", fit("ab", 4))
}

// On a terminal a line is rewritten, and whatever follows begins one of its own.
func TestALineThatIsRewrittenIsEndedByTheNext(t *testing.T) {
	var out bytes.Buffer
	show := newDisplay(&out)
	show.terminal = true
	show.rewrite("one", true)
	show.rewrite("two", true)
	show.text("three")
	require.Equal(t, "\rone\x1b[K\rtwo\x1b[K\nthree\n", out.String())
}

func TestColoursAreForTerminals(t *testing.T) {
	var out bytes.Buffer
	show := newDisplay(&out)
	require.Equal(t, "text", show.paint(red, "text"))
	show.coloured = true
	require.Equal(t, "\x1b[31mtext\x1b[0m", show.paint(red, "text"))
}

func TestChangesArePrintedInTheWordsOfTheirKind(t *testing.T) {
	object := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: fields}
	}
	pod := func(image string, restarts int64, ready string) *unstructured.Unstructured {
		return object(map[string]any{
			"spec": map[string]any{"containers": []any{map[string]any{"image": image}}},
			"status": map[string]any{
				"phase":             "Running",
				"containerStatuses": []any{map[string]any{"restartCount": restarts}},
				"conditions":        []any{map[string]any{"type": "Ready", "status": ready}},
			},
		})
	}
	for want, states := range map[string][2]*unstructured.Unstructured{
		"Pending → Running":     {simplePod("a", "b", "Pending"), simplePod("a", "b", "Running")},
		"none → Pending":        {object(map[string]any{}), simplePod("a", "b", "Pending")},
		"image 1.2.3 → 1.2.4":   {pod("r.example/app:1.2.3", 0, "True"), pod("r.example/app:1.2.4", 0, "True")},
		"crashed, restart 2":    {pod("app", 1, "True"), pod("app", 2, "False")},
		"ready: False → True":   {pod("app", 1, "False"), pod("app", 1, "True")},
		"touched":               {versioned("b", "1", "Running"), versioned("b", "2", "Running")},
		"replicas 2 → 3":        {object(map[string]any{"spec": map[string]any{"replicas": int64(2)}}), object(map[string]any{"spec": map[string]any{"replicas": int64(3)}})},
		"data.list":             {object(map[string]any{"data": map[string]any{"list": []any{"a"}}}), object(map[string]any{"data": map[string]any{"list": []any{"b"}}})},
		"a none → 1 +1":         {object(map[string]any{"data": map[string]any{}}), object(map[string]any{"data": map[string]any{"a": "1", "b": "2"}})},
		"metadata.labels":       {object(map[string]any{"metadata": map[string]any{}}), object(map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})},
		"being deleted":         {object(map[string]any{}), object(map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-02T03:04:05Z"}})},
		"immutable true → none": {object(map[string]any{"immutable": true}), object(map[string]any{})},
	} {
		require.Equal(t, want, whatChanged(states[0], states[1]))
	}
	require.Equal(t, "new", whatIsNew(object(map[string]any{})))
	require.Equal(t, "Pending", whatIsNew(simplePod("a", "b", "Pending")))
}

// The null device is a character device, as a terminal is.
func TestNoColorAndDumbTerminalsAreRespected(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = null.Close() }()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	show := newDisplay(null)
	require.True(t, show.terminal && show.coloured, "an empty NO_COLOR is as good as none")

	t.Setenv("NO_COLOR", "1")
	show = newDisplay(null)
	require.True(t, show.terminal)
	require.False(t, show.coloured)

	t.Setenv("TERM", "dumb")
	require.False(t, newDisplay(null).terminal)
}

// A table must fit the display also where there are many namespaces, and say what
// it leaves out.
func TestATableHasAtMostTwelveNamespaces(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 15 {
		for j := range i + 1 {
			object := simplePod(fmt.Sprintf("ns-%02d", i), fmt.Sprintf("pod-%d", j), "Running")
			object.SetResourceVersion(fmt.Sprint(100*i + j + 1))
			objects = append(objects, object)
		}
	}
	var out bytes.Buffer
	holding(t, objects...).table(newDisplay(&out), "pods")
	require.Contains(t, out.String(), "… and 3 namespaces with fewer")
	require.NotContains(t, out.String(), "ns-02 ")
	require.Regexp(t, `ns-14 +15 +15 +0 +0 +1415\n`, out.String())
	require.Regexp(t, `all +120 +120 +0 +0 +1415\n`, out.String())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), width, line)
	}
}

func TestATableOfWhatHasNoPhaseHasNoColumnsForIt(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "a", "name": "b", "resourceVersion": "7"},
	}}
	var out bytes.Buffer
	holding(t, object).table(newDisplay(&out), "configmaps")
	require.Contains(t, out.String(), "configmaps")
	require.NotContains(t, out.String(), "running")
}

// A line that wraps cannot be rewritten: its first row would stay for each rewriting.
func TestALineThatIsRewrittenFitsNarrowTerminals(t *testing.T) {
	for name, p := range map[string]page{
		"known total":   {number: 2000, objects: 999_999, total: 1_000_000, version: "123456789012"},
		"unknown total": {number: 2000, objects: 1_000_000, version: "123456789012"},
	} {
		for _, what := range []string{"pods", "validatingadmissionpolicybindings"} {
			t.Run(name+", "+what, func(t *testing.T) {
				var out bytes.Buffer
				show := newDisplay(&out)
				show.started = show.started.Add(-time.Hour)
				show.terminal = true
				newNarrator(show, what, newTrial(settings{})).gotPage(p)
				line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K")
				require.Less(t, utf8.RuneCountInString(line), 60, line)
				require.Contains(t, line, "1000000")
			})
		}
	}
}

// Names, versions and fields are the server's, and a terminal obeys what is printed.
func TestNothingThatTheServerNamesMovesTheCursor(t *testing.T) {
	const evil = "a\x1b[2J\r\nb\u009b\u202e\x07"
	for _, coloured := range []bool{false, true} {
		var out bytes.Buffer
		show := newDisplay(&out)
		show.coloured = coloured
		object := simplePod(evil, evil, "Running")
		object.SetResourceVersion(evil)
		show.section(evil)
		show.tell(red, "✗", "failure: %s", evil)
		show.delta(red, "-", evil, evil, evil)
		show.text(show.paint(bold, evil), evil)
		show.rewrite(evil, true)
		holding(t, object).table(show, "pods")
		equalLine(show, 1, evil, "")
		for _, s := range []style{bold, dim, red, green} {
			out = *bytes.NewBufferString(strings.ReplaceAll(out.String(), "\x1b["+string(s)+"m", ""))
		}
		printed := strings.ReplaceAll(strings.ReplaceAll(out.String(), "\x1b[0m", ""), "\n", "")
		require.Equal(t, -1, strings.IndexFunc(printed, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", printed)
		require.Contains(t, printed, "b")
	}
	require.Equal(t, 12, utf8.RuneCountInString(fit(evil, 12)))
	require.NotContains(t, fit(evil, 12), "\x1b")
}

func TestAnErrorIsPrintedWithoutControlCharacters(t *testing.T) {
	require.Equal(t, "two\n  lines\uFFFD[31m\uFFFD", printableLines("two\n  lines\x1b[31m\u202e"))
}
