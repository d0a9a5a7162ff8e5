package apiclient

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOriginsAreSchemeHostAndPort(t *testing.T) {
	for _, same := range [][2]string{
		{"http://h/x", "http://H:80/y?z"},
		{"https://h", "https://h:443"},
		{"https://[::1]:443", "https://[::1]"},
	} {
		require.Equal(t, parsed(t, same[0]), parsed(t, same[1]))
	}
	for _, other := range [][2]string{
		{"http://h", "https://h"},
		{"http://h:443", "https://h:443"},
		{"http://h", "http://h:8080"},
		{"http://h", "http://h.evil"},
	} {
		require.NotEqual(t, parsed(t, other[0]), parsed(t, other[1]))
	}
}

func parsed(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return origin(u)
}
