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

// Sent records the headers and queries of one call's requests, including those added by transports,
// a cookie jar or a proxy, for each redirect and retry. It may be used concurrently: a transport
// may still write after it has returned a response.
type Sent struct {
	mu      sync.Mutex
	headers []headerField
	queries []string
}

type headerField struct{ name, value string }

type sentKey struct{}

// Recorded returns a context whose requests are recorded in the Sent.
func Recorded(ctx context.Context) (context.Context, *Sent) {
	s := &Sent{}
	ctx = context.WithValue(ctx, sentKey{}, s)
	return httptrace.WithClientTrace(
		ctx, &httptrace.ClientTrace{WroteHeaderField: s.recordHeader}), s
}

// sentFromContext returns the record of requests made with a context of Recorded.
func sentFromContext(ctx context.Context) *Sent {
	s, _ := ctx.Value(sentKey{}).(*Sent)
	return s
}

// Request records a request whose headers may never be written, or not by net/http.
func (s *Sent) Request(request *http.Request) {
	if request == nil ||
		request.URL == nil { // from a transport that does not set the response's Request
		return
	}
	for name, values := range request.Header {
		s.recordHeader(name, values)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if query := request.URL.RawQuery; !slices.Contains(s.queries, query) {
		s.queries = append(s.queries, query)
	}
}

// recordHeader is called for each header that is written.
func (s *Sent) recordHeader(name string, values []string) {
	if publicHeaders[name] {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		if f := (headerField{name, value}); !slices.Contains(s.headers, f) {
			s.headers = append(s.headers, f)
		}
	}
}

// publicHeaders are headers that an error may show: they describe the message, or name the
// impersonated user, which an API server repeats in each refusal.
var publicHeaders = func() map[string]bool {
	public := map[string]bool{":authority": true, ":method": true, ":scheme": true}
	for _, name := range []string{
		"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Cache-Control",
		"Connection", "Content-Length", "Content-Type", "Host", "Impersonate-Group",
		"Impersonate-Uid", "Impersonate-User", "Pragma", "Te", "Traceparent", "Tracestate",
		"Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "Via",
	} {
		public[name] = true
		public[strings.ToLower(name)] = true // HTTP/2 writes lower case
	}
	return public
}()

// publicParameters are the query parameters that an error may show. A refusal of a version names
// the version.
var publicParameters = []string{
	"allowWatchBookmarks", "limit", "pretty", "resourceVersion", "resourceVersionMatch",
	"sendInitialEvents", "timeout", "timeoutSeconds", "watch",
}

// isCredential reports whether the name of a header or query parameter suggests a credential.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{
		"auth", "token", "cookie", "secret", "passw", "credential",
		"api-key", "apikey", "api_key", "session", "signature", "jwt",
	}, func(part string) bool { return strings.Contains(name, part) })
}

// Secrets are values of a call's headers and queries that must not be shown, because a server may
// repeat them. They are normalized and sorted, the longest first. Credentials are secret at any
// length, query values from minQuerySecretLength characters, others from minSecretLength;
// publicHeaders and publicParameters are not.
type Secrets []string

const (
	// minSecretLength is the minimum length of a secret that is not a credential, and of a
	// truncated secret. A shorter value would match in every text; if it is a credential, it is
	// hidden only as a whole word.
	minSecretLength = 6
	// minQuerySecretLength is smaller, because selectors may be short.
	minQuerySecretLength = 3
)

// Secrets computes the values on each call, since it is called only after a failure.
func (s *Sent) Secrets() Secrets {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	headers := slices.Clone(s.headers)
	queries := slices.Clone(s.queries)
	s.mu.Unlock()
	var found Secrets
	for _, query := range queries {
		found = found.addQuery(query)
	}
	for _, f := range headers {
		found = found.addHeader(f.name, f.value)
	}
	slices.SortFunc(
		found,
		func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(found)
}

// add adds a value of at least least characters, as written and with each level of its escapes
// decoded.
func (s Secrets) add(value string, minLength int) Secrets {
	for t, ok := newDecodedText(value), true; ok; t, ok = t.unescape() {
		if text := t.normalize().text; strings.TrimSpace(text) != "" && len(text) >= minLength {
			s = append(s, text)
		}
	}
	return s
}

func (s Secrets) addHeader(name, value string) Secrets {
	if name == ":path" ||
		strings.EqualFold(name, "Referer") { // contains the query of a followed redirect
		_, query, _ := strings.Cut(value, "?")
		return s.addQuery(query)
	}
	minLength := minSecretLength
	if isCredential(name) {
		minLength = 1
	}
	s = s.add(value, minLength)
	if strings.EqualFold(name, "Cookie") {
		for pair := range strings.SplitSeq(value, ";") {
			_, value, _ := strings.Cut(pair, "=")
			s = s.add(strings.TrimSpace(value), minSecretLength)
		}
		return s
	}
	scheme, credential, ok := strings.Cut(value, " ")
	if !ok {
		return s
	}
	s = s.add(credential, minLength)
	if !strings.EqualFold(scheme, "Basic") {
		return s
	}
	if userPassword, err := base64.StdEncoding.DecodeString(credential); err == nil {
		_, password, _ := strings.Cut(string(userPassword), ":")
		s = s.add(string(userPassword), minLength).add(password, minLength)
	}
	return s
}

func (s Secrets) addQuery(raw string) Secrets {
	for pair := range strings.SplitSeq(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		switch {
		case err == nil && slices.Contains(publicParameters, name):
		case isCredential(name):
			s = s.add(value, 1)
		default:
			s = s.add(value, minQuerySecretLength)
		}
	}
	return s
}

// Hide replaces secrets by dots, in any letter case and escaping. It also hides the beginning of a
// secret where the text may be truncated, since most of a token is as good as the whole.
func (s Secrets) Hide(text string) string {
	if len(s) == 0 {
		return text
	}
	hidden := make([]bool, len(text))
	for t, ok := newDecodedText(text), true; ok; t, ok = t.unescape() {
		normalized := t.normalize()
		s.markComplete(normalized, hidden)
		s.markTruncated(normalized, hidden)
	}
	return replaceHidden(text, hidden)
}

// markComplete marks the complete secrets in a text.
func (s Secrets) markComplete(t decodedText, hidden []bool) {
	for _, secret := range s {
		for from := 0; ; from++ {
			at := strings.Index(t.text[from:], secret)
			if at < 0 {
				break
			}
			from += at
			end := from + len(secret)
			if len(secret) >= minSecretLength ||
				!insideWord(t.text, from) && !insideWord(t.text, end) {
				t.mark(from, end, hidden)
				from = end - 1
			}
		}
	}
}

// insideWord reports whether a word continues at a position. Dots end a word, since the text was
// truncated there.
func insideWord(text string, at int) bool {
	letter := func(c byte) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf
	}
	return at > 0 && at < len(text) && letter(text[at-1]) && letter(text[at]) &&
		!strings.HasPrefix(text[at:], dots)
}

const dots = "…"

// markTruncated marks the beginning of a secret where a text may be truncated: at its end, and
// before dots. Dots may be in the middle, where an error's text continues after a quotation.
func (s Secrets) markTruncated(t decodedText, hidden []bool) {
	begin := 0
	for end := range len(t.text) + 1 {
		if end < len(t.text) && !hidden[t.offsets[end]] && !strings.HasPrefix(t.text[end:], dots) {
			continue
		}
		piece := t.text[begin:end]
		unescaped := piece[:len(piece)-incompleteEscape(piece)]
		for _, secret := range s {
			if at := min(truncatedAt(piece, secret), truncatedAt(unescaped, secret)); at < len(
				piece) {
				t.mark(begin+at, end, hidden)
			}
		}
		begin = end + 1
	}
}

// truncatedAt returns the position in piece of a secret that is truncated at its end, or
// math.MaxInt.
func truncatedAt(piece, secret string) int {
	for n := min(len(secret), len(piece)); n >= minSecretLength; n-- {
		if strings.HasSuffix(piece, secret[:n]) {
			return len(piece) - n
		}
	}
	return math.MaxInt
}

// replaceHidden replaces each hidden part by dots, without doubling dots that are there already.
func replaceHidden(text string, hidden []bool) string {
	var out strings.Builder
	copied := 0
	for i := 0; i < len(text); {
		if !hidden[i] {
			i++
			continue
		}
		out.WriteString(strings.TrimSuffix(text[copied:i], dots) + dots)
		for i < len(text) && hidden[i] {
			i++
		}
		if strings.HasPrefix(text[i:], dots) {
			i += len(dots)
		}
		copied = i
	}
	return out.String() + text[copied:]
}

// Line returns received text as one printable line without secrets, for an error's text.
func (s Secrets) Line(text string) string { return s.Hide(Printable(text, MaxForeignText)) }

// maxErrorText bounds the bytes of an error's text that are examined; at most MaxForeignText
// characters are shown.
const maxErrorText = 16 << 10

// CleanError returns an error whose text is safe to print. Causes with a secret are removed,
// because net/http repeats unreadable input without a bound.
func (s Secrets) CleanError(err error) error {
	if errors.Is(err, ErrAuthorize) || errors.Is(err, ErrRedirect) {
		return err // made by the client, not by the server
	}
	text := err.Error()
	clean := Printable(s.Hide(text[:min(len(text), maxErrorText)]), MaxForeignText)
	if clean == text {
		return err
	}
	return &sanitizedError{text: clean, causes: s.safeCauses(err)}
}
