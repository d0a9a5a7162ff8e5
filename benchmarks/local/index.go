package local

import "fmt"

const (
	perTier  = 10_000
	perOwner = 10
)

func namespaceOf(i int) string { return fmt.Sprintf("namespace-%d", i/perNamespace) }

func tierOf(i int) string { return fmt.Sprintf("tier-%d", i/perTier) }

func ownerOf(i int) string { return fmt.Sprintf("owner-%d", i/perOwner) }

// ByNamespace is an index function of a program. It makes one allocation, the slice.
func ByNamespace(object *Small) ([]string, error) { return []string{object.Namespace}, nil }
