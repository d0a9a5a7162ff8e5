package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func warned(values ...string) http.Header { return http.Header{"Warning": values} }

func warning(t *testing.T, text string) string {
	t.Helper()
	value, err := utilnet.NewWarningHeader(warningCode, "-", text)
	require.NoError(t, err)
	return value
}

// heard has the reports, in order.
type heard []string

func (h *heard) hear(_ context.Context, text string) { *h = append(*h, text) }

func TestAWarningIsReportedOnceHoweverOftenItComes(t *testing.T) {
	var reported heard
	w := newWarnings("", reported.hear)
	w.reportNew(t.Context(), http.Header{}, nil)
	w.reportNew(t.Context(), warned(`299 - "v1 is old"`), nil)
	w.reportNew(t.Context(), warned(`299 - "v1 is old"`, `299 other "v1 is old"`), nil)
	w.reportNew(
		t.Context(),
		warned(
			`299 - "first", 299 - "v1 is old" , 299 - "second"`,
			`299 - "third" "Sat, 25 Aug 2012 23:34:45 GMT"`),
		nil,
	)
	require.Equal(t, heard{"v1 is old", "first", "second", "third"}, reported)
}

func TestEachSourceIsWarnedForItself(t *testing.T) {
	var reported heard
	for range 2 {
		newWarnings("", reported.hear).reportNew(t.Context(), warned(`299 - "v1 is old"`), nil)
	}
	require.Len(t, reported, 2)
}

func TestHeadersThatAreNoWarningsOfAnAPIServerAreIgnored(t *testing.T) {
	for name, value := range map[string]string{
		"another code":    `199 - "miscellaneous"`,
		"stale, a cache":  `110 proxy "Response is Stale"`,
		"no text":         `299 - ""`,
		"only space":      `299 - "   "`,
		"no quotes":       `299 - text`,
		"no end":          `299 - "text`,
		"no agent":        `299 "text"`,
		"code of letters": `abc - "text"`,
		"control":         "299 - \"a\x1b[2Jb\"",
		"not UTF-8":       "299 - \"a\xff\"",
		"empty":           "",
		"trailing":        `299 - "text" trailing`,
	} {
		t.Run(name, func(t *testing.T) {
			var reported heard
			w := newWarnings("", reported.hear)
			w.reportNew(t.Context(), warned(value, `299 - "after it"`), nil)
			require.Equal(t, heard{"after it"}, reported)
		})
	}
}

func TestTheTextOfAWarningIsTruncatedAndPrintable(t *testing.T) {
	var reported heard
	w := newWarnings("", reported.hear)
	// For Unicode, marks that change the direction of writing are not control characters.
	w.reportNew(t.Context(), warned(`299 - "good \"quoted\"`+"\u202e \u2028"+`evil"`), nil)
	long := strings.Repeat("ä", maxWarningText)
	w.reportNew(t.Context(), warned(warning(t, long+"1")), nil)
	w.reportNew(
		t.Context(), warned(warning(t, long+"2")), nil) // its report would have the same text
	require.Equal(t, heard{`good "quoted" evil`, long + "…"}, reported)
}

func TestEndlessWarningsAreReportedUpToALimit(t *testing.T) {
	var reported heard
	w := newWarnings("", reported.hear)
	for i := range 10 * maxWarnings {
		w.reportNew(t.Context(), warned(fmt.Sprintf(`299 - "text %d"`, i)), nil)
	}
	require.Len(t, reported, maxWarnings+1)
	require.Equal(t, fmt.Sprintf("text %d", maxWarnings-1), reported[maxWarnings-1])
	require.Equal(
		t, "more than 256 different warnings; further ones are not reported", reported[maxWarnings])
	require.Len(t, w.reported, maxWarnings)
	w.reportNew(t.Context(), warned(`299 - "text 0"`), nil)
	require.Len(t, reported, maxWarnings+1)
}

func TestWarningsOfOneResponseAreBounded(t *testing.T) {
	var reported heard
	w := newWarnings("", reported.hear)
	many := make([]string, 0, 2*maxWarnings)
	for i := range 2 * maxWarnings {
		many = append(many, fmt.Sprintf(`299 - "text %d"`, i))
	}
	w.reportNew(t.Context(), warned(strings.Join(many, ", ")), nil)
	require.Len(t, reported, maxWarnings)
}

// A function that itself warns, or lists, must not block on a lock.
func TestAWarningHandlerMayCauseWarnings(t *testing.T) {
	var w *warnings
	var reported heard
	w = newWarnings("", func(ctx context.Context, text string) {
		reported.hear(ctx, text)
		w.reportNew(ctx, warned(`299 - "first"`, `299 - "second"`), nil)
	})
	w.reportNew(t.Context(), warned(`299 - "first"`), nil)
	require.Equal(t, heard{"first", "second"}, reported)
}

func TestConcurrentResponsesReportAWarningOnce(t *testing.T) {
	var mu sync.Mutex
	reported := map[string]int{}
	w := newWarnings("", func(_ context.Context, text string) {
		mu.Lock()
		defer mu.Unlock()
		reported[text]++
	})
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			for i := range 32 {
				w.reportNew(t.Context(), warned(fmt.Sprintf(`299 - "text %d"`, i)), nil)
			}
		})
	}
	calls.Wait()
	require.Len(t, reported, 32)
	for text, times := range reported {
		require.Equal(t, 1, times, text)
	}
}

func TestWarningsAreReadFromEveryResponse(t *testing.T) {
	var reported heard
	source := newSourceOf(t, server(func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		code := http.StatusOK
		if query.Get("continue") != "" {
			code = http.StatusGone
		}
		body := podList()
		if query.Get("watch") != "" {
			body = ""
		}
		return newResponse(code, textBody(body), "Warning", warning(t, query.Encode())), nil
	}), Options{OnWarning: reported.hear})
	_, err := source.List(metav1.ListOptions{})
	require.NoError(t, err)
	_, err = source.List(metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	_, err = source.List(metav1.ListOptions{Continue: "x"})
	require.Error(t, err)
	w, err := source.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	_, err = source.List(metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	require.Equal(t, heard{"resourceVersion=1", "continue=x", "watch=true"}, reported)
}

type keyOf string

func TestAWarningHandlerGetsTheContextOfTheCall(t *testing.T) {
	var got any
	w := newWarnings("", func(ctx context.Context, _ string) { got = ctx.Value(keyOf("k")) })
	w.reportNew(context.WithValue(t.Context(), keyOf("k"), "v"), warned(`299 - "text"`), nil)
	require.Equal(t, "v", got)
}

func TestWithoutAFunctionWarningsAreLoggedWithTheLoggerOfTheContext(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	w := newWarnings("https://h/apis/apps/v1/deployments", nil)
	for range 2 {
		w.reportNew(klog.NewContext(t.Context(), logger), warned(`299 - "v1 is old"`), nil)
	}
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().Data()
	require.Len(t, log, 1)
	require.Equal(t, ktesting.LogInfo, log[0].Type)
	require.Zero(t, log[0].Verbosity)
	require.Equal(
		t, []any{"warning", "v1 is old", "url", "https://h/apis/apps/v1/deployments"},
		log[0].ParameterKVList)
}
