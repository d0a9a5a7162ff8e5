package clientgo

import (
	"maps"
	"slices"

	"k8s.io/client-go/rest"
)

// ownCopy copies a config deeper than rest.CopyConfig, which shares Impersonate's groups and writes a field of ExecProvider: a
// data race where two sources are made of one config.
func ownCopy(config *rest.Config) *rest.Config {
	own := *config
	own.Impersonate.Groups = slices.Clone(config.Impersonate.Groups)
	own.Impersonate.Extra = maps.Clone(config.Impersonate.Extra)
	for key, values := range own.Impersonate.Extra {
		own.Impersonate.Extra[key] = slices.Clone(values)
	}
	own.TLSClientConfig = *config.TLSClientConfig.DeepCopy()
	// An exec plugin is found again by what its configuration says, not by where that
	// lies: sources with equal ones share the plugin and what it answered.
	own.ExecProvider = config.ExecProvider.DeepCopy()
	own.AuthProvider = config.AuthProvider.DeepCopy()
	return &own
}
