package projection

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/watchmirror/cache/internal/apiclient"
)

// maxPathText bounds the characters of a path in an error's text.
const maxPathText = 253

var (
	errRefused      = errors.New("it contains a comma, white space or an unprintable character")
	errBracketOpen  = errors.New("a bracket is not closed")
	errAfterBracket = errors.New("a closing bracket must be followed by a dot or a bracket")
	errEmptyName    = errors.New("it has an empty name; the form is spec.nodeName")
	errWildcard     = errors.New(
		"wildcards are not supported; a path applies to all elements of a list")
)

// isRefused reports whether a path must not contain r. ProjectionMark separates paths by commas.
func isRefused(r rune) bool {
	return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// parsePath splits a path into names.
func parsePath(path string) ([]string, error) {
	if strings.ContainsFunc(path, isRefused) {
		return nil, pathError(path, errRefused)
	}
	var names []string
	for rest := "." + path; rest != ""; {
		var name string
		switch rest[0] {
		case '.':
			name, rest = splitBefore(rest[1:], ".[")
		case '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, pathError(path, errBracketOpen)
			}
			name = rest[1:end]
			rest = rest[end+1:]
		default:
			return nil, pathError(path, errAfterBracket)
		}
		switch name {
		case "":
			return nil, pathError(path, errEmptyName)
		case "*":
			return nil, pathError(path, errWildcard)
		}
		names = append(names, name)
	}
	return names, nil
}

func splitBefore(text, chars string) (before, from string) {
	if at := strings.IndexAny(text, chars); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}

func pathError(path string, err error) error {
	return fmt.Errorf("%q: %w", apiclient.Printable(path, maxPathText), err)
}
