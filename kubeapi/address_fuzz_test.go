package kubeapi

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzAddresses makes sources from arbitrary options. An accepted source requests the named host,
// below the named path, the named collection and no other, with a query that a server reads as
// intended. A refusal names the field, and never has a password of an address.
func FuzzAddresses(f *testing.F) {
	f.Add("https://api.test:6443", "", "v1", "pods", "shop", "app=web", "metadata.name=x")
	f.Add("http://user:password1@api.test/", "apps", "v1", "deployments", "", "", "")
	f.Add("https://[::1]:80/a/../b%2Fc/", "a b", "..", "x%2f", "-", "a in (b,c)", "a!=b,")
	f.Add("HTTPS://api.test/ü?", "g", "v", "%00", "UPPER", " ", "x")
	f.Fuzz(func(t *testing.T, base, group, version, resource, namespace, label, field string) {
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
		var asked *url.URL
		lw, err := New(Options{
			BaseURL: base, Resource: gvr, Namespace: namespace, LabelSelector: label,
			FieldSelector: field,
			HTTPClient: &http.Client{
				Transport: server(func(r *http.Request) (*http.Response, error) {
					asked = r.URL
					return newResponse(200, textBody(podList())), nil
				}),
			},
		})
		if err != nil {
			checkRefusedOptions(t, err, base)
			return
		}
		const token = "a&b=c#d/é%2f"
		_, err = lw.List(metav1.ListOptions{
			Continue:      token,
			Limit:         7,
			LabelSelector: "more",
			FieldSelector: "x.y=z",
		})
		require.NoError(t, err)
		wanted, err := url.Parse(base)
		require.NoError(t, err)
		require.True(t, strings.EqualFold(wanted.Scheme, asked.Scheme))
		// A colon without a port has no meaning, and net/http drops it.
		require.Equal(t, strings.TrimSuffix(wanted.Host, ":"), asked.Host)
		require.Nil(t, asked.User)
		require.Empty(t, asked.Fragment)

		segments := []string{"apis", group, version}
		if group == "" {
			segments = []string{"api", version}
		}
		if namespace != "" {
			segments = append(segments, "namespaces", namespace)
		}
		// An encoded slash or dot in the base's path stays encoded: it separates nothing.
		wantedPath := "/" + wanted.EscapedPath()
		for _, segment := range append(segments, resource) {
			wantedPath += "/" + url.PathEscape(segment)
		}
		require.Equal(t, path.Clean(wantedPath), asked.EscapedPath())
		checkQuery(t, asked.Query(), token, label, field)
	})
}

// checkRefusedOptions requires that an error names its field.
func checkRefusedOptions(t *testing.T, err error, base string) {
	t.Helper()
	require.ErrorIs(t, err, ErrInvalidOptions)
	named := false
	for _, field := range []string{
		"BaseURL", "Resource.Group", "Resource.Version", "Resource.Resource", "Namespace",
		"LabelSelector", "FieldSelector",
	} {
		named = named || strings.Contains(err.Error(), field+": ")
	}
	require.True(t, named, "%v", err)
	if strings.Contains(err.Error(), "BaseURL: ") {
		// The error is the same for another user, so a word of it may equal the password by chance.
		if u, parseErr := url.Parse(base); parseErr == nil && u.User != nil {
			u.User = url.User("somebody")
			_, other := New(Options{BaseURL: u.String(), Resource: pods})
			require.EqualError(t, other, err.Error())
		}
	}
}

// checkQuery requires that a list's query equals its options, with both selectors combined.
func checkQuery(t *testing.T, query url.Values, token, label, field string) {
	t.Helper()
	require.Equal(t, []string{token}, query["continue"])
	require.Equal(t, []string{"7"}, query["limit"])
	require.NotContains(t, query, "watch")
	own, err := labels.Parse(label)
	require.NoError(t, err)
	sent, err := labels.Parse(query.Get("labelSelector"))
	require.NoError(t, err)
	for _, set := range []labels.Set{
		{}, {"app": "web"}, {"more": ""}, {"app": "web", "more": "1"}, {"a": "b", "more": "x"},
	} {
		require.Equal(t, own.Matches(set) && set.Has("more"), sent.Matches(set), "%v", set)
	}
	ownField, err := fields.ParseSelector(field)
	require.NoError(t, err)
	sentField, err := fields.ParseSelector(query.Get("fieldSelector"))
	require.NoError(t, err)
	require.Len(t, sentField.Requirements(), len(ownField.Requirements())+1)
}

// FuzzRedirects sends a list on, once or again and again. A request that carries
// credentials is sent to no other address than the one that the program has named, and always
// carries them; the error for any other address does not tell what was in it.
func FuzzRedirects(f *testing.F) {
	f.Add(uint16(302), "/elsewhere", true)
	f.Add(uint16(307), "http://other.test/api", false)
	f.Add(uint16(301), "//api.test:80/x?y#z", true)
	f.Add(uint16(308), "http://user:password1@api.test/", false)
	f.Add(uint16(303), "http://API.test/{token}", true)
	f.Add(uint16(302), "http://[::1", false)
	f.Add(uint16(302), "https://api.test/", false)
	f.Fuzz(func(t *testing.T, code uint16, location string, again bool) {
		requests := 0
		lw := newSourceOf(t, server(func(r *http.Request) (*http.Response, error) {
			requests++
			host := strings.ToLower(r.URL.Host)
			require.True(
				t, r.URL.Scheme == "http" && (host == "api.test" || host == "api.test:80"), "%s",
				r.URL)
			require.Nil(t, r.URL.User)
			require.Equal(t, "Bearer "+fuzzSecret, r.Header.Get("Authorization"))
			require.Equal(t, "value 123456", r.Header.Get("X-Own"))
			if requests > 1 && !again {
				return newResponse(200, textBody(podList())), nil
			}
			return newResponse(int(300+code%10), textBody(""), "Location", repeating(location)), nil
		}), Options{Authorize: func(r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+fuzzSecret)
			r.Header.Set("X-Own", "value 123456")
			return nil
		}})
		_, err := lw.List(metav1.ListOptions{})
		require.LessOrEqual(t, requests, maxRedirects)
		if requests == 1 || again {
			require.Error(t, err)
		} else {
			require.NoError(t, err)
		}
		if err != nil {
			checkFailure(t, err)
		}
		if errors.Is(err, ErrRedirect) {
			// Both origins are reported, and a path may be one's end.
			if u, parseErr := url.Parse(location); parseErr == nil && len(u.Path) > 15 &&
				!strings.Contains(
					lw.collection.String(), u.Path,
				) && !strings.Contains(strings.ToLower(u.Scheme+"://"+u.Host), u.Path) {
				require.NotContains(t, err.Error(), u.Path)
			}
		}
	})
}
