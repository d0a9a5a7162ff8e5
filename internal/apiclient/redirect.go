package apiclient

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

const (
	// maxRedirects is net/http's own limit. A CheckRedirect function must enforce it itself.
	maxRedirects = 10
	// maxLocation bounds the address of a redirect in bytes: secrets are looked for in it.
	maxLocation = 8 << 10
)

// sameOrigin refuses redirects to another scheme, host or port, to which net/http would send headers that it does not
// know to be secret, to an address with a user, whose password net/http would send, and those that would turn a change
// into a GET. Then it calls callers, which cannot lift the limit of redirects.
func sameOrigin(callers func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, sent []*http.Request) error {
		from, to := origin(sent[0].URL), origin(next.URL)
		if from != to {
			shown := sentBy(sent[0].Context()).Secrets().Hide(to)
			return fmt.Errorf("%w: from %s to %s", ErrRedirect, from, Printable(shown, MaxForeignText))
		}
		if next.URL.User != nil {
			return fmt.Errorf("%w: from %s to an address with a user in it", ErrRedirect, from)
		}
		if next.Method != sent[0].Method {
			// The answer to the GET would look like that of the change, which was not made.
			return fmt.Errorf("%w: its %s would become a %s", ErrRedirect, sent[0].Method, next.Method)
		}
		if len(sent) >= maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		// net/http has removed them if the host is spelled with other letter case.
		for _, name := range []string{"Authorization", "Cookie"} {
			if values := sent[0].Header.Values(name); len(values) > 0 && next.Header.Values(name) == nil {
				next.Header[name] = values
			}
		}
		if callers != nil {
			return callers(next, sent)
		}
		return nil
	}
}

// readableRedirects fails redirects to an invalid or very long URL. net/http's own error would quote the whole Location,
// which may contain credentials.
type readableRedirects struct {
	next http.RoundTripper // nil means http.DefaultTransport at the time of the request
}

func (r readableRedirects) RoundTrip(request *http.Request) (*http.Response, error) {
	next := r.next
	if next == nil {
		next = http.DefaultTransport
	}
	response, err := next.RoundTrip(request)
	if err != nil || !redirects(response.StatusCode) {
		return response, err
	}
	location := response.Header.Get("Location")
	if len(location) > maxLocation {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: to an address of %d bytes, of which %d are allowed", ErrRedirect, len(location), maxLocation)
	}
	if _, err := request.URL.Parse(location); err != nil {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: to an address that is no URL", ErrRedirect)
	}
	return response, nil
}

// redirects reports whether net/http follows the Location of a response with this code.
func redirects(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// origin returns scheme, host and port in lower case, without the scheme's default port.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}
