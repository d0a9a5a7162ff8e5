package kubeapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// sent is what the requests of one call have carried: what it made itself, and what
// transports, a cookie jar or a proxy have added on the way, for each request of a redirect
// or a retry. It may be used concurrently: a transport may write on after its answer.
type sent struct {
	mu      sync.Mutex
	fields  []headerField
	queries []string
}

type headerField struct{ name, value string }

type sentKey struct{}

// recorded returns a context whose requests are recorded.
func recorded(ctx context.Context) (context.Context, *sent) {
	s := &sent{}
	ctx = context.WithValue(ctx, sentKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: s.wrote}), s
}

// secretsOf are those of the requests that were made with such a context.
func secretsOf(ctx context.Context) secrets {
	s, _ := ctx.Value(sentKey{}).(*sent)
	return s.secrets()
}

// request records a request whose headers may never be written, or not by net/http.
func (s *sent) request(request *http.Request) {
	if request == nil || request.URL == nil { // of a response that no transport of net/http has made
		return
	}
	for name, values := range request.Header {
		s.wrote(name, values)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if query := request.URL.RawQuery; !slices.Contains(s.queries, query) {
		s.queries = append(s.queries, query)
	}
}

// wrote is called for each header that is written.
func (s *sent) wrote(name string, values []string) {
	if publicHeaders[name] {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		if f := (headerField{name, value}); !slices.Contains(s.fields, f) {
			s.fields = append(s.fields, f)
		}
	}
}

// publicHeaders say nothing that may not be read in an error's text: how a message is
// written, and for whom an API server is asked, which it repeats in each refusal.
var publicHeaders = func() map[string]bool {
	public := map[string]bool{":authority": true, ":method": true, ":scheme": true}
	for _, name := range []string{
		"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control", "Connection", "Content-Length",
		"Content-Type", "Host", "Impersonate-Group", "Impersonate-Uid", "Impersonate-User", "Pragma", "Te", "Traceparent",
		"Tracestate", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Via",
	} {
		public[name], public[strings.ToLower(name)] = true, true // as HTTP/2 writes it
	}
	return public
}()

// publicParameters are those of a query that are no one's secret. A refusal for a version
// names the version.
var publicParameters = []string{
	"allowWatchBookmarks", "limit", "pretty", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeout",
	"timeoutSeconds", "watch",
}

// isCredential says whether a header or a parameter of a query is a credential by its name.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{
		"auth", "token", "cookie", "secret", "passw", "credential", "api-key", "apikey", "api_key", "session", "signature", "jwt",
	}, func(part string) bool { return strings.Contains(name, part) })
}

// secrets are the values of a call's headers and queries, which a server may repeat and which must not be shown, folded, the
// longest first. Credentials are secret at any length, values of queries from leastOfQuery characters on, others from
// leastSecret on; publicHeaders and publicParameters are not.
type secrets []string

const (
	// leastSecret is how many characters a secret has at least that is none by its name, and
	// how many of one are worth hiding where a text is cut. Anything shorter would be found in
	// every text; where it is secret all the same, it is hidden as a word of its own.
	leastSecret = 6
	// leastOfQuery is less: selectors may be short.
	leastOfQuery = 3
)

// secrets makes them anew: nobody asks before something has failed.
func (s *sent) secrets() secrets {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	fields, queries := slices.Clone(s.fields), slices.Clone(s.queries)
	s.mu.Unlock()
	var found secrets
	for _, query := range queries {
		found = found.query(query)
	}
	for _, f := range fields {
		found = found.header(f.name, f.value)
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(found)
}

// add adds a value if it has at least so many characters, also as it reads without the
// escapes that it may have itself.
func (s secrets) add(value string, least int) secrets {
	for p, more := asWritten(value), true; more; p, more = p.unescaped() {
		if text := p.folded().text; strings.TrimSpace(text) != "" && len(text) >= least {
			s = append(s, text)
		}
	}
	return s
}

func (s secrets) header(name, value string) secrets {
	if name == ":path" || strings.EqualFold(name, "Referer") { // of a redirect that was followed
		_, query, _ := strings.Cut(value, "?")
		return s.query(query)
	}
	least := leastSecret
	if isCredential(name) {
		least = 1
	}
	s = s.add(value, least)
	if strings.EqualFold(name, "Cookie") {
		for pair := range strings.SplitSeq(value, ";") {
			_, value, _ := strings.Cut(pair, "=")
			s = s.add(strings.TrimSpace(value), leastSecret)
		}
		return s
	}
	scheme, credential, ok := strings.Cut(value, " ")
	if !ok {
		return s
	}
	s = s.add(credential, least)
	if login, err := base64.StdEncoding.DecodeString(credential); err == nil && strings.EqualFold(scheme, "Basic") {
		_, password, _ := strings.Cut(string(login), ":")
		s = s.add(string(login), least).add(password, least)
	}
	return s
}

func (s secrets) query(raw string) secrets {
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		switch {
		case err == nil && slices.Contains(publicParameters, name):
		case isCredential(name):
			s = s.add(value, 1)
		default:
			s = s.add(value, leastOfQuery)
		}
	}
	return s
}

// hide puts dots in the place of secrets, however they are escaped and in whatever
// case. A text may be cut off, and a secret with it: most of a token tells as much as the
// whole.
func (s secrets) hide(text string) string {
	if len(s) == 0 {
		return text
	}
	hidden := make([]bool, len(text))
	for p, more := asWritten(text), true; more; p, more = p.unescaped() {
		read := p.folded()
		s.markWhole(read, hidden)
		s.markCut(read, hidden)
	}
	return withDots(text, hidden)
}

// markWhole marks the secrets in a text.
func (s secrets) markWhole(p plainText, hidden []bool) {
	for _, secret := range s {
		for from := 0; ; from++ {
			at := strings.Index(p.text[from:], secret)
			if at < 0 {
				break
			}
			from += at
			end := from + len(secret)
			if len(secret) >= leastSecret || !inWord(p.text, from) && !inWord(p.text, end) {
				p.mark(from, end, hidden)
				from = end - 1
			}
		}
	}
}

// inWord says whether a word continues at a place in a text. Dots end one: the text is cut there.
func inWord(text string, at int) bool {
	letter := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf }
	return at > 0 && at < len(text) && letter(text[at-1]) && letter(text[at]) && !strings.HasPrefix(text[at:], dots)
}

const dots = "…"

// markCut marks the beginning of a secret where a text may be cut: at its end, and before
// any dots that say so, or that will stand there. Those may be in the middle, where an
// error's text continues after what it quotes.
func (s secrets) markCut(p plainText, hidden []bool) {
	begin := 0
	for end := range len(p.text) + 1 {
		if end < len(p.text) && !hidden[p.at[end]] && !strings.HasPrefix(p.text[end:], dots) {
			continue
		}
		piece := p.text[begin:end]
		whole := piece[:len(piece)-cutEscape(piece)]
		for _, secret := range s {
			if at := min(cutIn(piece, secret), cutIn(whole, secret)); at < len(piece) {
				p.mark(begin+at, end, hidden)
			}
		}
		begin = end + 1
	}
}

// cutIn is where in a piece of text a secret begins that is cut at its end; without one it
// is beyond any.
func cutIn(piece, secret string) int {
	for n := min(len(secret), len(piece)); n >= leastSecret; n-- {
		if strings.HasSuffix(piece, secret[:n]) {
			return len(piece) - n
		}
	}
	return math.MaxInt
}

// withDots is a text with dots in place of secrets. Next to it no others are needed.
func withDots(text string, hidden []bool) string {
	var line strings.Builder
	shown := 0
	for i := 0; i < len(text); {
		if !hidden[i] {
			i++
			continue
		}
		line.WriteString(strings.TrimSuffix(text[shown:i], dots) + dots)
		for i < len(text) && hidden[i] {
			i++
		}
		if strings.HasPrefix(text[i:], dots) {
			i += len(dots)
		}
		shown = i
	}
	return line.String() + text[shown:]
}

// line makes one line of foreign text that may become part of an error's.
func (s secrets) line(text string) string { return s.hide(wire.Printable(text, maxExplanation)) }

// mostErrorText is how much of an error's text is looked at: more than is shown.
const mostErrorText = 16 << 10

// tell makes an error of the transport or of a body fit to be printed: the text is cleaned, and causes with a secret are
// removed, because net/http repeats without a bound what it could not read.
func (s secrets) tell(err error) error {
	if errors.Is(err, ErrAuthorize) || errors.Is(err, ErrRedirect) {
		return err // of this side of the connection
	}
	text := err.Error()
	fit := wire.Printable(s.hide(text[:min(len(text), mostErrorText)]), maxExplanation)
	if fit == text {
		return err
	}
	return &cleanedError{text: fit, causes: s.harmlessIn(err)}
}
