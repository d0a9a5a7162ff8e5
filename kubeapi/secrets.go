package kubeapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// secrets are what must not be told of a request: the values of the headers that the
// caller has put on it, and its query. There are servers that repeat what they were sent,
// in an error page or, if they do not speak HTTP at all, in place of an answer.
type secrets []secret

// secret is one of them. Its first known bytes anybody may know: a text that ends with
// these alone tells nothing, and may well end so.
type secret struct {
	text  string
	known int
}

// leastSecret is how many characters a secret has at least. What is shorter is none, and
// would be found in every text.
const leastSecret = 6

// ownHeaders are those that this package sets: everybody may know them.
var ownHeaders = map[string]bool{"Accept": true, "Accept-Encoding": true, "User-Agent": true}

func secretsOf(request *http.Request) secrets {
	query := request.URL.RawQuery
	// "The requested resource" is no beginning of resourceVersion=1.
	found := secrets{{query, strings.Index(query, "=") + 1}}
	for name, values := range request.Header {
		if ownHeaders[name] {
			continue
		}
		for _, value := range values {
			found = append(found, secret{text: value})
			// The credential without its scheme.
			if _, credential, ok := strings.Cut(value, " "); ok {
				found = append(found, secret{text: credential})
			}
		}
	}
	// The longest first: one may be the beginning of another.
	slices.SortFunc(found, func(a, b secret) int { return len(b.text) - len(a.text) })
	return found
}

// hide puts dots in the place of what is secret. A text may be cut off, and a secret with
// it: most of a token tells as much as the whole.
func (s secrets) hide(text string) string {
	for _, secret := range s {
		if len(secret.text) >= leastSecret {
			text = secret.hideCut(strings.ReplaceAll(text, secret.text, "…"))
		}
	}
	return text
}

// lower are the secrets as they are found in a text of lower case, which a scheme and a
// host always are: a token still has most of its worth there.
func (s secrets) lower() secrets {
	lower := make(secrets, len(s))
	for i, secret := range s {
		lower[i] = secret
		lower[i].text = strings.ToLower(secret.text)
	}
	return lower
}

// line makes one line of foreign text that may become part of an error's.
func (s secrets) line(text string) string { return s.hide(wire.Printable(text, maxExplanation)) }

// hideCut hides the beginning of a secret where a text may be cut: at its end, and before
// any dots that say so. Those may be in the middle, where an error's text goes on after
// what it quotes.
func (s secret) hideCut(text string) string {
	pieces := strings.Split(text, "…")
	for i, piece := range pieces {
		for n := min(len(s.text), len(piece)); n >= s.known+leastSecret; n-- {
			if strings.HasSuffix(piece, s.text[:n]) {
				pieces[i] = piece[:len(piece)-n]
				if i == len(pieces)-1 {
					pieces[i] += "…"
				}
				break
			}
		}
	}
	return strings.Join(pieces, "…")
}

// mostErrorText is how much of an error's text is looked at: more than is told.
const mostErrorText = 16 << 10

// tell makes an error of the transport, or of a body, fit to be printed. One that is
// stays as it is, with its causes. Of any other the text is all that is kept: net/http
// repeats what it could not read, without a bound, and so may the causes.
func (s secrets) tell(err error) error {
	if errors.Is(err, ErrAuthorize) || errors.Is(err, ErrRedirect) {
		return err // of this side of the connection
	}
	text := err.Error()
	fit := wire.Printable(s.hide(text[:min(len(text), mostErrorText)]), maxExplanation)
	if fit == text {
		return err
	}
	return errors.New(fit)
}
