package clientgo

import (
	"errors"
	"net/url"

	"k8s.io/client-go/rest"
)

// configAddress returns the address under which the API's paths begin, by client-go's rules: an
// empty Host means localhost, and a Host without a scheme means https if the config has any TLS
// setting (a CA, a client certificate, Insecure), else http.
func configAddress(config *rest.Config) (string, error) {
	// The returned path is ignored: it comes from APIPath and GroupVersion, and kubeapi builds its
	// own from the resource.
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", errNoAddress
	}
	return address(base)
}

// address returns a URL without query and fragment and with its path escaped again (/a%2Fb becomes
// /a/b), as client-go's clients use it. It refuses a user and password, which net/http would send
// and logs would show.
func address(base *url.URL) (string, error) {
	switch {
	case base.User != nil:
		return "", errors.New(
			"must not contain a user or password; set Username and Password of rest.Config")
	case base.Scheme != "http" && base.Scheme != "https":
		return "", errors.New("is neither http nor https")
	case base.Hostname() == "":
		return "", errors.New("has no host")
	}
	plain := url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}
	return plain.String(), nil
}

// errNoAddress replaces the errors of net/url and client-go for an invalid Host. They quote it, and
// it may contain a password.
var errNoAddress = errors.New(
	"is neither a URL (https://host:port/path) nor host:port; a path needs the scheme")
