package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable replaces what a terminal would obey and not print. Names, versions and
// messages are the server's, which may be anybody's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}

// printableLines is printable for a text of several lines.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// painted is what paint puts before and after a text.
var painted = regexp.MustCompile("\x1b\\[[0-9]{1,2}m")

// printable is the function of that name for a line that may be painted. What
// somebody else could get through it is a colour.
func (d *display) printable(line string) string {
	if !d.coloured {
		return printable(line)
	}
	var clean strings.Builder
	at := 0
	for _, span := range painted.FindAllStringIndex(line, -1) {
		clean.WriteString(printable(line[at:span[0]]) + line[span[0]:span[1]])
		at = span[1]
	}
	return clean.String() + printable(line[at:])
}

// cut makes a text at most so many columns wide.
func cut(text string, columns int) string {
	runes := []rune(printable(text))
	if len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return string(runes)
}

// fit makes a text exactly so many columns wide.
func fit(text string, columns int) string {
	text = cut(text, columns)
	return text + strings.Repeat(" ", columns-utf8.RuneCountInString(text))
}

// wrap breaks a text into lines at its spaces. A word that is longer than a line
// gets one of its own.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
