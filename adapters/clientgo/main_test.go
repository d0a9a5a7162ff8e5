package clientgo_test

import (
	"fmt"
	"os"
	"testing"
)

// pluginEnv makes this test binary an exec plugin, which prints credentials with the variable's
// value as token.
const pluginEnv = "CLIENTGO_TEST_PLUGIN_TOKEN"

func TestMain(m *testing.M) {
	if token := os.Getenv(pluginEnv); token != "" {
		fmt.Printf(
			`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}`,
			token)
		return
	}
	os.Exit(m.Run())
}
