package kubeapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

const (
	// maxWarnings is how many texts of one source are reported, and how many of one answer
	// are looked at. A resource has one or two; what sends more, sends noise.
	maxWarnings = 256

	// maxWarningText is how many characters of a text are reported. An API server cuts
	// the warnings of one answer to this many in all.
	maxWarningText = 4096

	// codeWarning is the only one that API servers use: a warning that holds for
	// longer than this answer. The other codes of RFC 7234 come from caches on the way.
	codeWarning = 299
)

// furtherWarnings is reported in place of the first text that is too many.
var furtherWarnings = fmt.Sprintf("more than %d different warnings; further ones are not reported", maxWarnings)

// warnings reports each warning that comes beside the answers of one source once, whatever
// number of answers repeat it. Texts are compared as they are reported: cut and made fit to be
// printed. Of each no more is kept than a sum.
type warnings struct {
	report func(ctx context.Context, text string)

	mu       sync.Mutex
	reported map[[sha256.Size]byte]struct{}
	full     bool // furtherWarnings is reported
}

// newWarnings makes one that tells report, or the logger of the answer's context if that
// is nil. source is the address for the log, fit to be printed.
func newWarnings(source string, report func(ctx context.Context, text string)) *warnings {
	if report == nil {
		report = func(ctx context.Context, text string) {
			klog.FromContext(ctx).Info("The server sent a warning", "warning", text, "url", source)
		}
	}
	return &warnings{report: report, reported: map[[sha256.Size]byte]struct{}{}}
}

// note reports the new warnings in the headers of an answer, in their order. It may be called
// concurrently; of two answers with the same text, one call tells it. What was sent is
// hidden in the texts.
func (w *warnings) note(ctx context.Context, header http.Header, sent *sent) {
	values := header["Warning"]
	if len(values) == 0 {
		return
	}
	texts, secrets := warningTexts(values), sent.secrets()
	for i, text := range texts {
		texts[i] = secrets.hide(text)
	}
	for _, text := range w.unknown(texts) {
		w.report(ctx, text)
	}
}

// unknown remembers texts and returns those which were not.
func (w *warnings) unknown(texts []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var unknown []string
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		if _, known := w.reported[sum]; known || w.full {
			continue
		}
		if w.full = len(w.reported) == maxWarnings; w.full {
			text = furtherWarnings
		} else {
			w.reported[sum] = struct{}{}
		}
		unknown = append(unknown, text)
	}
	return unknown
}

// warningTexts reads the header's values. A malformed one is left from where it is
// malformed on: nothing in it says where the next would begin. Values are split one
// by one, because a hostile one may hold a hundred thousand.
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
			if text := wire.Printable(warning.Text, maxWarningText); warning.Code == codeWarning && text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
