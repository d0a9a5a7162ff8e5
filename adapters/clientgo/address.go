package clientgo

import (
	"errors"
	"net/url"

	"k8s.io/client-go/rest"
)

// configAddress is where the API's paths begin, by client-go's rules: no Host is
// localhost, and one without a scheme is https if the config says anything of TLS
// (a CA, a client certificate, or that the server's is not to be checked), else http.
func configAddress(config *rest.Config) (string, error) {
	// The path that this returns beside the address is that of APIPath and
	// GroupVersion. kubeapi makes its own from the resource.
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", errNoAddress
	}
	return address(base)
}

// address is a URL without query and fragment and with its path escaped anew (/a%2Fb becomes /a/b), as client-go's clients have
// it. User and password are refused: net/http would send them, and logs would show them.
func address(base *url.URL) (string, error) {
	switch {
	case base.User != nil:
		return "", errors.New("must not hold a user or password; the fields Username and Password of rest.Config are for these")
	case base.Scheme != "http" && base.Scheme != "https":
		return "", errors.New("is neither http nor https")
	case base.Hostname() == "":
		return "", errors.New("names no host")
	}
	plain := url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}
	return plain.String(), nil
}

// errNoAddress replaces what net/url and client-go say of a Host that cannot be read:
// they quote it, and there may be a password in it.
var errNoAddress = errors.New("is neither a URL (https://host:port/path) nor host:port; a path needs the scheme")
