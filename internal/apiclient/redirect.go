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
	// maxLocationBytes bounds the Location header, which is searched for secrets.
	maxLocationBytes = 8 << 10
)

// sameOrigin returns a CheckRedirect function. It refuses redirects to another scheme, host or
// port, to which net/http would send headers that it does not know to be secret, and redirects to a
// URL with a user, whose password net/http would send. Then it calls checkRedirect, which cannot
// raise maxRedirects.
func sameOrigin(
	checkRedirect func(*http.Request, []*http.Request) error,
) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, sent []*http.Request) error {
		from := origin(sent[0].URL)
		to := origin(next.URL)
		if from != to {
			printable := sentFromContext(sent[0].Context()).Secrets().Hide(to)
			return fmt.Errorf(
				"%w: from %s to %s", ErrRedirect, from, Printable(printable, MaxForeignText))
		}
		if next.URL.User != nil {
			return fmt.Errorf("%w: from %s to a URL with a user", ErrRedirect, from)
		}
		if len(sent) >= maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		// net/http has removed them if the host is spelled with other letter case.
		for _, name := range []string{"Authorization", "Cookie"} {
			values := sent[0].Header.Values(name)
			if len(values) > 0 && next.Header.Values(name) == nil {
				next.Header[name] = values
			}
		}
		if checkRedirect != nil {
			return checkRedirect(next, sent)
		}
		return nil
	}
}

// redirectValidator fails redirects to an invalid or very long URL. net/http's own error would
// quote the whole Location, which may contain credentials.
type redirectValidator struct {
	next http.RoundTripper // nil means defaultTransport at the time of the request
}

// transport returns the transport that sends the requests.
func (r redirectValidator) transport() http.RoundTripper {
	if r.next == nil {
		return defaultTransport()
	}
	return r.next
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (r redirectValidator) CloseIdleConnections() {
	if closer, ok := r.transport().(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (r redirectValidator) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.transport().RoundTrip(request)
	if err != nil || !isRedirect(response.StatusCode) {
		return response, err
	}
	location := response.Header.Get("Location")
	if len(location) > maxLocationBytes {
		_ = response.Body.Close()
		return nil, fmt.Errorf(
			"%w: to a URL of %d bytes, the maximum is %d", ErrRedirect, len(location),
			maxLocationBytes)
	}
	if _, err := request.URL.Parse(location); err != nil {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w: to an invalid URL", ErrRedirect)
	}
	return response, nil
}

// isRedirect reports whether net/http follows the Location of a response with this code.
func isRedirect(code int) bool {
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
