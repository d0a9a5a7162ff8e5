package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestBadFlagsExitWith2AndTheUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":        {[]string{"-sever", "x"}, "-sever"},
		"argument":            {[]string{"pods"}, `unexpected argument "pods"`},
		"negative time":       {[]string{"-for", "-1s"}, "-for"},
		"no time":             {[]string{"-for", "soon"}, "soon"},
		"empty server":        {[]string{"-server", ""}, "-server"},
		"resource alone":      {[]string{"-resource", "pods"}, "-resource needs -server"},
		"namespace alone":     {[]string{"-namespace", "shop"}, "-namespace needs -server"},
		"token file alone":    {[]string{"-token-file", "t"}, "-token-file needs -server"},
		"selector":            {[]string{"-server", "http://localhost", "-selector", "a b"}, "-selector"},
		"empty resource":      {[]string{"-server", "http://localhost", "-resource", ""}, "-resource"},
		"resource, too long":  {[]string{"-server", "http://localhost", "-resource", "a/v1/b/c"}, "-resource"},
		"no scheme":           {[]string{"-server", "127.0.0.1:8001"}, "-server: begin with http:// or https://"},
		"a name alone":        {[]string{"-server", "localhost:8001"}, "-server: begin with http:// or https://"},
		"no such scheme":      {[]string{"-server", "ftp://localhost"}, "-server: begin with http:// or https://"},
		"no host":             {[]string{"-server", "http://"}, "-server: the URL names no host"},
		"no URL":              {[]string{"-server", "http://a:secret/x@h"}, "-server: that is no URL"},
		"password":            {[]string{"-server", "http://a:secret@localhost"}, "-server: leave out user and password"},
		"query":               {[]string{"-server", "http://localhost?secret"}, "-server: leave out what follows the ?"},
		"fragment":            {[]string{"-server", "http://localhost#secret"}, "-server: leave out what follows the #"},
		"bad namespace":       {[]string{"-server", "http://localhost", "-namespace", "A_B"}, `-namespace: "A_B" is no name of a namespace`},
		"resource, escaped":   {[]string{"-server", "http://localhost", "-resource", "%2e"}, "-resource"},
		"group, escaped":      {[]string{"-server", "http://localhost", "-resource", "%2e/v1/pods"}, "-resource"},
		"resource, versioned": {[]string{"-server", "http://localhost", "-resource", "deployments.apps"}, "resource.version.group"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(t.Context(), test.args...)
			require.Equal(t, exitUsage, got.code)
			require.Contains(t, got.stderr, test.says)
			require.Contains(t, got.stderr, "usage: quickstart")
			require.NotContains(t, got.stderr, "secret")
			require.NotContains(t, got.stderr, "kubeapi")
			require.Empty(t, got.stdout)
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	got := runWith(t.Context(), "-help")
	require.Equal(t, exitEqual, got.code)
	require.Contains(t, got.stdout, "-token-file")
	require.Contains(t, got.stdout, "it is read again for each request")
	require.Empty(t, got.stderr)
}

func TestResourcesAreReadInTheirUsualForms(t *testing.T) {
	for text, want := range map[string]schema.GroupVersionResource{
		"pods":                           {Version: "v1", Resource: "pods"},
		"v1/services":                    {Version: "v1", Resource: "services"},
		"apps/v1/deployments":            {Group: "apps", Version: "v1", Resource: "deployments"},
		"deployments.v1.apps":            {Group: "apps", Version: "v1", Resource: "deployments"},
		"ingresses.v1.networking.k8s.io": {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
		"flows.v1beta3.example.com":      {Group: "example.com", Version: "v1beta3", Resource: "flows"},
	} {
		got, err := parseResource(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "/", "//", "/v1/pods", "apps/v1/", "apps/v1", "pods.v1", "deployments.apps", "certificates.cert-manager.io"} {
		_, err := parseResource(text)
		require.Error(t, err, text)
	}
}

func TestTheShowLasts15SecondsAndWithAServer30ByDefault(t *testing.T) {
	for _, test := range []struct {
		args []string
		want time.Duration
	}{
		{nil, 15 * time.Second},
		{[]string{"-server", "http://localhost"}, 30 * time.Second},
		{[]string{"-for", "0"}, 0},
		{[]string{"-server", "http://localhost", "-for", "1m"}, time.Minute},
	} {
		got, err := parseSettings(test.args, nil, nil)
		require.NoError(t, err)
		require.Equal(t, test.want, got.lasts, "%q", test.args)
	}
}

// What a flag may say and what the source takes is checked in two places; nothing may
// pass the first and be refused by the second.
func TestWhatTheFlagsTakeTheSourceTakes(t *testing.T) {
	for _, args := range [][]string{
		{"-server", "HTTP://127.0.0.1:8001/"},
		{"-server", "https://[::1]:6443/k8s/clusters/c1", "-resource", "deployments.v1.apps", "-namespace", "shop", "-selector", "a in (b,c)"},
	} {
		got, err := parseSettings(args, nil, nil)
		require.NoError(t, err)
		_, err = got.source(nil)
		require.NoError(t, err)
	}
}
