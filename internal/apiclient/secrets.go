package apiclient

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
)

// Sent records the headers and queries of one call's requests, including those added by transports, a cookie jar or a
// proxy, for each redirect and retry. It may be used concurrently: a transport may still write after it has returned a
// response.
type Sent struct {
	mu      sync.Mutex
	fields  []headerField
	queries []string
}

type headerField struct{ name, value string }

type sentKey struct{}

// Recorded returns a context whose requests are recorded in the Sent.
func Recorded(ctx context.Context) (context.Context, *Sent) {
	s := &Sent{}
	ctx = context.WithValue(ctx, sentKey{}, s)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: s.wrote}), s
}

// sentBy returns the record of requests made with a context of Recorded.
func sentBy(ctx context.Context) *Sent {
	s, _ := ctx.Value(sentKey{}).(*Sent)
	return s
}

// Request records a request whose headers may never be written, or not by net/http.
func (s *Sent) Request(request *http.Request) {
	if request == nil || request.URL == nil { // from a transport that does not set the response's Request
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
func (s *Sent) wrote(name string, values []string) {
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

// publicHeaders are headers that an error may show: they describe the message, or name the impersonated user, which an
// API server repeats in each refusal.
var publicHeaders = func() map[string]bool {
	public := map[string]bool{":authority": true, ":method": true, ":scheme": true}
	for _, name := range []string{
		"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control", "Connection", "Content-Length",
		"Content-Type", "Host", "Impersonate-Group", "Impersonate-Uid", "Impersonate-User", "Pragma", "Te", "Traceparent",
		"Tracestate", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Via",
	} {
		public[name], public[strings.ToLower(name)] = true, true // HTTP/2 writes lower case
	}
	return public
}()

// publicParameters are the query parameters that an error may show. A refusal of a version names the version.
var publicParameters = []string{
	"allowWatchBookmarks", "limit", "pretty", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeout",
	"timeoutSeconds", "watch",
}

// isCredential reports whether the name of a header or query parameter suggests a credential.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{
		"auth", "token", "cookie", "secret", "passw", "credential", "api-key", "apikey", "api_key", "session", "signature", "jwt",
	}, func(part string) bool { return strings.Contains(name, part) })
}

// Secrets are values of a call's headers and queries that must not be shown, because a server may repeat them. They are
// folded and sorted, the longest first. Credentials are secret at any length, query values from leastOfQuery
// characters, others from leastSecret; publicHeaders and publicParameters are not.
type Secrets []string

const (
	// leastSecret is the minimum length of a secret that is not a credential, and of a cut secret. A shorter value
	// would match in every text; if it is a credential, it is hidden only as a whole word.
	leastSecret = 6
	// leastOfQuery is smaller, because selectors may be short.
	leastOfQuery = 3
)

// Secrets computes them on each call: it is called only after a failure.
func (s *Sent) Secrets() Secrets {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	fields, queries := slices.Clone(s.fields), slices.Clone(s.queries)
	s.mu.Unlock()
	var found Secrets
	for _, query := range queries {
		found = found.query(query)
	}
	for _, f := range fields {
		found = found.header(f.name, f.value)
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(found)
}

// add adds a value of at least least characters, as written and with each level of its escapes decoded.
func (s Secrets) add(value string, least int) Secrets {
	for p, more := asWritten(value), true; more; p, more = p.unescaped() {
		if text := p.folded().text; strings.TrimSpace(text) != "" && len(text) >= least {
			s = append(s, text)
		}
	}
	return s
}

func (s Secrets) header(name, value string) Secrets {
	if name == ":path" || strings.EqualFold(name, "Referer") { // contains the query of a followed redirect
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

func (s Secrets) query(raw string) Secrets {
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

// Hide replaces secrets by dots, in any letter case and escaping. It also hides the beginning of a secret where the
// text may be cut off, since most of a token is as good as the whole.
func (s Secrets) Hide(text string) string {
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

// markWhole marks the complete secrets in a text.
func (s Secrets) markWhole(p plainText, hidden []bool) {
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

// inWord reports whether a word continues at a position. Dots end a word, since the text is cut there.
func inWord(text string, at int) bool {
	letter := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf }
	return at > 0 && at < len(text) && letter(text[at-1]) && letter(text[at]) && !strings.HasPrefix(text[at:], dots)
}

const dots = "…"

// markCut marks the beginning of a secret where a text may be cut: at its end, and before dots. Dots may be in the
// middle, where an error's text continues after a quotation.
func (s Secrets) markCut(p plainText, hidden []bool) {
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

// cutIn returns the position at which a secret begins that is cut at the end of piece, or math.MaxInt.
func cutIn(piece, secret string) int {
	for n := min(len(secret), len(piece)); n >= leastSecret; n-- {
		if strings.HasSuffix(piece, secret[:n]) {
			return len(piece) - n
		}
	}
	return math.MaxInt
}

// withDots replaces each hidden part by dots, without doubling dots that are there already.
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

// Line returns foreign text as one printable line without secrets, for an error's text.
func (s Secrets) Line(text string) string { return s.Hide(Printable(text, MaxForeignText)) }

// mostErrorText bounds how much of an error's text is examined; less is shown.
const mostErrorText = 16 << 10

// CleanError returns an error whose text is safe to print. Causes with a secret are removed, because net/http repeats
// unreadable input without a bound.
func (s Secrets) CleanError(err error) error {
	if errors.Is(err, ErrAuthorize) || errors.Is(err, ErrRedirect) {
		return err // made by the client, not by the server
	}
	text := err.Error()
	fit := Printable(s.Hide(text[:min(len(text), mostErrorText)]), MaxForeignText)
	if fit == text {
		return err
	}
	return &cleanedError{text: fit, causes: s.harmlessIn(err)}
}
