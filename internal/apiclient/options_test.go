package apiclient

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaultUserAgentNamesProgramAndLibrary(t *testing.T) {
	require.Regexp(
		t, regexp.MustCompile(`^apiclient\.test/[\w.+-]+ \(\w+/\w+\) watchmirror-cache/[\w.+-]+$`),
		defaultUserAgent())
}

func TestProductTokenDropsWhatWouldBreakAHeader(t *testing.T) {
	require.Equal(t, "devel", productToken("(devel)"))
	require.Equal(t, "v1.2.0-rc.1+meta", productToken("v1.2.0-rc.1+meta"))
	require.Equal(t, "ab", productToken("a\r\n b"))
	require.Equal(t, "unknown", productToken("()"))
}
