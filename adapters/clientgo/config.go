package clientgo

import (
	"maps"
	"slices"

	"k8s.io/client-go/rest"
)

// ownCopy copies a config more deeply than rest.CopyConfig, which shares Impersonate's groups and
// writes to a field of ExecProvider. That is a data race if two sources are made from one config.
func ownCopy(config *rest.Config) *rest.Config {
	own := *config
	own.Impersonate.Groups = slices.Clone(config.Impersonate.Groups)
	own.Impersonate.Extra = maps.Clone(config.Impersonate.Extra)
	for key, values := range own.Impersonate.Extra {
		own.Impersonate.Extra[key] = slices.Clone(values)
	}
	own.TLSClientConfig = *config.TLSClientConfig.DeepCopy()
	// client-go identifies an exec plugin by the content of its configuration, not by the pointer,
	// so sources with equal configurations share the plugin and its result.
	own.ExecProvider = config.ExecProvider.DeepCopy()
	own.AuthProvider = config.AuthProvider.DeepCopy()
	return &own
}
