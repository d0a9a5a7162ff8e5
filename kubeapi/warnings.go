package kubeapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/internal/loglines"
)

const (
	// maxWarnings bounds the texts reported for one source, and those examined in one response. A
	// resource usually has one or two.
	maxWarnings = 256

	// maxWarningText bounds the characters of a reported text. An API server cuts all warnings of
	// one response to this length.
	maxWarningText = 4096

	// warningCode is the only code that API servers use. Other codes of RFC 7234 come from caches
	// in between.
	warningCode = 299
)

// tooManyWarnings is reported once in place of the texts beyond maxWarnings.
var tooManyWarnings = fmt.Sprintf(
	"more than %d different warnings; further ones are not reported", maxWarnings)

// warnings reports each warning of one source once, however many responses repeat it. Texts are
// compared as reported: cut and printable. Only a hash of each is kept.
type warnings struct {
	report func(ctx context.Context, text string)

	mu       sync.Mutex
	reported map[[sha256.Size]byte]struct{}
	full     bool // tooManyWarnings was reported
}

// newWarnings returns warnings that call report, or the logger of the call's context if report is
// nil. source is the printable address for the log.
func newWarnings(source string, report func(ctx context.Context, text string)) *warnings {
	if report == nil {
		report = func(ctx context.Context, text string) {
			logger := loglines.FromContext(ctx)
			logger.Info("The server sent a warning", "warning", text, "url", source)
		}
	}
	return &warnings{report: report, reported: map[[sha256.Size]byte]struct{}{}}
}

// reportNew reports the new warnings in a response's headers, in order. It may be called
// concurrently; if two responses have the same text, one call reports it. Secrets of the request
// are hidden.
func (w *warnings) reportNew(ctx context.Context, header http.Header, sent *apiclient.Sent) {
	values := header["Warning"]
	if len(values) == 0 {
		return
	}
	texts := warningTexts(values)
	secrets := sent.Secrets()
	for i, text := range texts {
		texts[i] = secrets.Hide(text)
	}
	for _, text := range w.addNew(texts) {
		w.report(ctx, text)
	}
}

// addNew records texts and returns the new ones.
func (w *warnings) addNew(texts []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var added []string
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		if _, known := w.reported[sum]; known || w.full {
			continue
		}
		w.full = len(w.reported) == maxWarnings
		if w.full {
			text = tooManyWarnings
		} else {
			w.reported[sum] = struct{}{}
		}
		added = append(added, text)
	}
	return added
}

// warningTexts parses the header's values. A value is ignored from the point where it is malformed,
// since the next warning cannot be found. Values are parsed one by one because a hostile value may
// hold a hundred thousand warnings.
func warningTexts(values []string) []string {
	var texts []string
	seen := 0
	for _, rest := range values {
		for rest != "" && seen < maxWarnings {
			warning, after, err := utilnet.ParseWarningHeader(rest)
			if err != nil {
				break
			}
			rest = after
			seen++
			text := apiclient.Printable(warning.Text, maxWarningText)
			if warning.Code == warningCode && text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
