package statuspage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// redacted replaces a value that is not shown.
const redacted = "(redacted)"

// errNotShown: the object cannot be encoded as JSON. The cause is not shown, because it may contain
// a part of the object.
var errNotShown = errors.New("the object cannot be shown as JSON")

// redactedAlways are fields of every object: kubectl keeps a copy of the whole object in an
// annotation.
var redactedAlways = [][]string{
	{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
}

// redactedInSecrets are the fields with the content of a Secret.
var redactedInSecrets = [][]string{{"data"}, {"stringData"}}

// objectJSON returns an object as indented JSON without redacted fields. pointers are those of
// Registry.Redact.
func objectJSON(object any, pointers []string) (text []byte, err error) {
	defer func() {
		if recover() != nil { // from the object's MarshalJSON
			text = nil
			err = errNotShown
		}
	}()
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, errNotShown
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errNotShown
	}
	paths := redactedAlways
	if isSecret(object, value) {
		paths = append(paths[:len(paths):len(paths)], redactedInSecrets...)
	}
	for _, path := range paths {
		value = redact(value, path)
	}
	for _, pointer := range pointers {
		value = redact(value, parsePointer(pointer))
	}
	text, err = json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotShown, err)
	}
	return text, nil
}

// isSecret returns whether the kind or the Go type has "secret" in its name. Objects of Go types
// usually have no kind.
func isSecret(object, decoded any) bool {
	fields, _ := decoded.(map[string]any)
	kind, _ := fields["kind"].(string)
	t := reflect.TypeOf(object)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil {
		kind += " " + t.Name()
	}
	return strings.Contains(strings.ToLower(kind), "secret")
}

// parsePointer splits a JSON pointer. The leading slash is optional. An empty pointer is the whole
// object.
func parsePointer(pointer string) []string {
	pointer = strings.TrimPrefix(pointer, "/")
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens
}

// redact returns value with the value at path replaced. It changes value, which is freshly decoded
// JSON.
func redact(value any, path []string) any {
	if len(path) == 0 {
		return redacted
	}
	switch within := value.(type) {
	case map[string]any:
		for key := range within {
			if path[0] == "*" || path[0] == key {
				within[key] = redact(within[key], path[1:])
			}
		}
	case []any:
		for i := range within {
			if path[0] == "*" || path[0] == strconv.Itoa(i) {
				within[i] = redact(within[i], path[1:])
			}
		}
	}
	return value
}
