package wiretest

import "github.com/watchmirror/cache/kubeapi/internal/wire"

// Pruned returns a decoded value reduced to the wanted fields: the expected result of decoding
// Cut's output. It does not change the value.
func Pruned(value any, wanted *wire.Names) any {
	if wanted.Whole {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		pruned := map[string]any{}
		for name, field := range value {
			if below := wanted.Find([]byte(name)); below != nil {
				pruned[name] = Pruned(field, below)
			}
		}
		return pruned
	case []any:
		pruned := make([]any, len(value))
		for i, element := range value {
			pruned[i] = Pruned(element, wanted)
		}
		return pruned
	}
	return nil
}

// NamesOf returns the names for paths; the last of each path is wanted whole.
func NamesOf(paths ...[]string) *wire.Names {
	names := &wire.Names{}
	for _, path := range paths {
		current := names
		for _, name := range path {
			current = current.Below(name)
		}
		current.Whole = true
	}
	return names
}
