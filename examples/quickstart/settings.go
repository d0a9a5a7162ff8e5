package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// settings are what the flags say.
type settings struct {
	// server is empty for the demonstration; the others but lasts belong to it.
	server    string
	resource  schema.GroupVersionResource
	namespace string
	selector  string
	tokenFile string
	caFile    string
	// lasts is how long the show goes on before the final check; zero means until
	// it is interrupted.
	lasts time.Duration
}

const (
	demoLasts   = 15 * time.Second
	remoteLasts = 30 * time.Second
)

// errHelp says that the usage was asked for, and printed.
var errHelp = flag.ErrHelp

const usage = `usage: quickstart [flags]

Mirrors an API into memory and shows what happens. Without -server it brings an
API of its own, on loopback, and cuts its connections in the middle.

`

// parseSettings reads the flags. It prints the usage to stdout if that is asked
// for, and to stderr, with what is wrong, if something is.
func parseSettings(args []string, stdout, stderr io.Writer) (settings, error) {
	var s settings
	var resource string
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the flag package would print errors its own way
	flags.Usage = func() {}
	flags.StringVar(&s.server, "server", "", "mirror the API at this `URL`, for example http://127.0.0.1:8001 (kubectl proxy)")
	flags.StringVar(&resource, "resource", "pods", "what to mirror: pods, apps/v1/deployments or deployments.v1.apps; the `name` is plural")
	flags.StringVar(&s.namespace, "namespace", "", "only this `namespace`")
	flags.StringVar(&s.selector, "selector", "", "only objects with these `labels`, for example app=web")
	flags.StringVar(&s.tokenFile, "token-file", "", "send the bearer token in this `file`; it is read again for each request, so a pipe will not do")
	flags.StringVar(&s.caFile, "ca-file", "", "trust the certificates in this PEM `file`, and no others")
	flags.DurationVar(&s.lasts, "for", 0, "how long, for example 1m; 0 is until Ctrl-C (default 15s, with -server 30s)")

	err := flags.Parse(args)
	if err == nil {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		err = s.complete(resource, given, flags.Args())
	}
	if err == nil {
		return s, nil
	}
	out := stdout
	if !errors.Is(err, errHelp) {
		out = stderr
		fmt.Fprintf(out, "quickstart: %v\n\n", err)
	}
	fmt.Fprint(out, usage)
	flags.SetOutput(out)
	flags.PrintDefaults()
	return s, err
}

// complete checks what the flag package cannot, and fills in the defaults.
func (s *settings) complete(resource string, given map[string]bool, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if given["server"] && s.server == "" {
		return errors.New("-server: the URL is empty")
	}
	for _, name := range []string{"resource", "namespace", "selector", "token-file", "ca-file"} {
		if given[name] && s.server == "" {
			return fmt.Errorf("-%s needs -server", name)
		}
	}
	if s.lasts < 0 {
		return fmt.Errorf("-for: %v is negative", s.lasts)
	}
	if !given["for"] {
		s.lasts = demoLasts
		if s.server != "" {
			s.lasts = remoteLasts
		}
	}
	var err error
	if s.server != "" {
		if err = checkServer(s.server); err != nil {
			return fmt.Errorf("-server: %w", err)
		}
	}
	if s.namespace != "" && len(validation.IsDNS1123Label(s.namespace)) > 0 {
		return fmt.Errorf("-namespace: %q is no name of a namespace: those are of lower-case letters, digits and -", s.namespace)
	}
	if _, err = labels.Parse(s.selector); err != nil {
		return fmt.Errorf("-selector: %w", err)
	}
	if s.resource, err = parseResource(resource); err != nil {
		return fmt.Errorf("-resource: %w", err)
	}
	return nil
}

// checkServer says in the words of the flags what the source would refuse. None of it
// repeats the address, which may hold a password: that is one of the mistakes.
func checkServer(address string) error {
	scheme, _, found := strings.Cut(strings.ToLower(address), "://")
	if !found || scheme != "http" && scheme != "https" {
		return errors.New("begin with http:// or https://")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("that is no URL; it has the form http://host:port, with a number as port")
	case u.Hostname() == "":
		return errors.New("the URL names no host")
	case u.User != nil:
		return errors.New("leave out user and password; -token-file names a file with a bearer token")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("leave out what follows the ?")
	case u.Fragment != "":
		return errors.New("leave out what follows the #")
	}
	return nil
}

// versionForm tells deployments.v1.apps from deployments.apps, which leaves out
// the version: https://kubernetes.io/docs/reference/using-api/#api-versioning
// says how versions are named.
var versionForm = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// parseResource reads a resource of the core API by its name alone, any other as
// group/version/resource or resource.version.group.
func parseResource(text string) (schema.GroupVersionResource, error) {
	var gvr schema.GroupVersionResource
	parts := strings.Split(text, "/")
	switch {
	case len(parts) == 3:
		gvr = schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	case len(parts) == 2:
		gvr = schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}
	case len(parts) == 1 && strings.Contains(text, "."):
		if full, _ := schema.ParseResourceArg(text); full != nil {
			gvr = *full
		}
	case len(parts) == 1:
		gvr = schema.GroupVersionResource{Version: "v1", Resource: text}
	}
	noPath := len(content.IsPathSegmentName(gvr.Resource)) > 0 || len(content.IsPathSegmentName(gvr.Group)) > 0
	if noPath || gvr.Resource == "" || !versionForm.MatchString(gvr.Version) || len(parts) == 3 && gvr.Group == "" {
		return gvr, fmt.Errorf("%q is neither a name such as pods, nor group/version/resource (apps/v1/deployments), "+
			"nor resource.version.group (deployments.v1.apps)", text)
	}
	return gvr, nil
}
