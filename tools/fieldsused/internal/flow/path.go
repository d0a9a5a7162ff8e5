package flow

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Types that contain themselves have endless paths, and functions that descend into them have
// countless ones. So a path longer than maxPathNames is cut. Above maxOrigins paths of a value, or
// maxUses of a function, those that follow are cut to shortPathNames. Everything below the end of a
// path that was cut counts as used.
const (
	maxPathNames   = 12
	shortPathNames = 2
	maxOrigins     = 64
	maxUses        = 1000
)

// shortened returns the first names of a path.
func shortened(path string) string {
	split := names(path)
	if len(split) <= shortPathNames {
		return path
	}
	return pathOf(split[:shortPathNames])
}

// join appends a relative path to a path, both in the form of kubeapi.Options.Fields.
func join(path, relative string) string {
	switch {
	case path == "":
		return relative
	case relative == "":
		return path
	case strings.Count(path, ".")+strings.Count(path, "[") >= maxPathNames:
		return path
	case relative[0] == '[':
		return path + relative
	}
	return path + "." + relative
}

// keyName returns a map's key as a part of a path, or false if no path can have it.
func keyName(key string) (name string, ok bool) {
	isForbidden := func(r rune) bool {
		return r == ',' || r == ']' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}
	if key == "" || key == "*" || strings.ContainsFunc(key, isForbidden) {
		return "", false
	}
	if strings.ContainsAny(key, ".[") {
		return "[" + key + "]", true
	}
	return key, true
}

// isWellFormed reports whether kubeapi accepts the form of a path.
func isWellFormed(path string) bool {
	isForbidden := func(r rune) bool {
		return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}
	return wellFormed.MatchString(path) && !strings.ContainsFunc(path, isForbidden) &&
		!slices.Contains(names(path), "*")
}

// wellFormed is a name, followed by names after dots or in brackets.
var wellFormed = regexp.MustCompile(`^[^.\[]+(\.[^.\[]+|\[[^\]]+\])*$`)

// names splits a path into the names of fields and keys.
func names(path string) []string {
	var split []string
	for path != "" {
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return append(split, path)
			}
			split = append(split, path[1:end])
			path = strings.TrimPrefix(path[end+1:], ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(split, path)
		}
		split = append(split, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return split
}

// pathOf joins names.
func pathOf(names []string) string {
	path := ""
	for _, name := range names {
		key, _ := keyName(name)
		path = join(path, key)
	}
	return path
}

// covers reports whether a path is another one or one above it.
func covers(path, other string) bool {
	if path == "" || path == other {
		return true
	}
	rest, ok := strings.CutPrefix(other, path)
	return ok && (rest[0] == '.' || rest[0] == '[')
}
