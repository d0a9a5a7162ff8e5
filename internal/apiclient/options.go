package apiclient

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseBaseURL returns the address of a server. Its errors do not quote it, because it may have a
// password.
func ParseBaseURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("is required, for example https://127.0.0.1:6443")
	}
	scheme, _, found := strings.Cut(strings.ToLower(text), "://")
	if !found || scheme != "http" && scheme != "https" {
		return nil, errors.New("must begin with http:// or https://")
	}
	base, err := url.Parse(text)
	if err != nil {
		// url.Parse quotes the part that it cannot read. That may be part of a password: one with a
		// slash looks like a port.
		return nil, errors.New("is not a URL of the form https://host:port/path")
	}
	switch {
	case base.Hostname() == "":
		return nil, errors.New("has no host")
	case base.User != nil:
		return nil, errors.New(
			"must not contain a user or password; set them on the request with Authorize")
	case base.RawQuery != "" || base.ForceQuery:
		return nil, errors.New("must not have a query")
	case base.Fragment != "":
		return nil, errors.New("must not have a fragment")
	}
	return base, nil
}

// Namespace validates the name of a namespace; the empty name is valid.
func Namespace(name string) error {
	if name == "" {
		return nil
	}
	if reasons := validation.IsDNS1123Label(name); len(reasons) > 0 {
		return fmt.Errorf("%q: %s", name, strings.Join(reasons, ", "))
	}
	return nil
}

// HeaderValue refuses control characters, at construction instead of in each request.
func HeaderValue(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("must not contain control characters")
	}
	return nil
}

// modulePath is the path of this library in a program's build information.
const modulePath = "github.com/watchmirror/cache"

// defaultUserAgent returns, for example, "quickstart/v1.2.0 (linux/amd64)
// watchmirror-cache/v0.1.0". API servers log it and use it for priority and fairness.
func defaultUserAgent() string {
	program := "unknown"
	library := "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		program = build.Main.Version
		library = build.Main.Version
		for _, module := range build.Deps {
			if module.Path == modulePath {
				library = module.Version
			}
		}
	}
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return fmt.Sprintf(
		"%s/%s (%s/%s) watchmirror-cache/%s",
		productToken(
			name),
		productToken(program),
		runtime.GOOS,
		runtime.GOARCH,
		productToken(library),
	)
}

// productToken keeps the characters that RFC 9110 allows in a token and that are usual in a user
// agent. The version of a program built from a checkout is "(devel)", whose parentheses would begin
// a comment.
func productToken(text string) string {
	token := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z',
			r >= 'A' && r <= 'Z',
			r >= '0' && r <= '9',
			strings.ContainsRune("-_.+", r):
			return r
		}
		return -1
	}, text)
	if token == "" {
		return "unknown"
	}
	return token
}
