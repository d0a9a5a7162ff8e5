package projection

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/watchmirror/cache/internal/apiclient"
)

// mostText is the number of characters of a path that an error shows.
const mostText = 253

// parse splits a path into names.
func parse(path string) ([]string, error) {
	// ProjectionMark separates paths by commas.
	if strings.ContainsFunc(path, func(r rune) bool { return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return nil, wrong(path, errors.New("there is a comma or a blank in it, or what cannot be printed"))
	}
	var names []string
	for rest := "." + path; rest != ""; {
		var name string
		switch rest[0] {
		case '.':
			name, rest = cutAtAny(rest[1:], ".[")
		case '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, wrong(path, errors.New("a bracket is not closed"))
			}
			name, rest = rest[1:end], rest[end+1:]
		default:
			return nil, wrong(path, errors.New("behind a bracket there must be a dot or another bracket"))
		}
		switch name {
		case "":
			return nil, wrong(path, errors.New("it has an empty name; the form is spec.nodeName"))
		case "*":
			return nil, wrong(path, errors.New("there are no wildcards; lists are walked through by themselves"))
		}
		names = append(names, name)
	}
	return names, nil
}

func cutAtAny(text, chars string) (before, from string) {
	if at := strings.IndexAny(text, chars); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}

func wrong(path string, err error) error {
	return fmt.Errorf("%q: %w", apiclient.Printable(path, mostText), err)
}
