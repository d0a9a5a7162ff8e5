package apiclient

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A text may be cut right behind a short secret. Fails if the dots there count as more of its word.
func TestAShortSecretBeforeATruncationIsHidden(t *testing.T) {
	s := Secrets{}.add("k3y", 1)
	require.Equal(t, "x-api-key: …", s.Hide("x-api-key: k3y"))
	require.Equal(t, "x-api-key: … more", s.Hide("x-api-key: k3y… more"))
	require.Equal(t, "a k3yboard", s.Hide("a k3yboard"))
}
