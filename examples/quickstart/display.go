package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// width is how many columns the display needs.
	width = 80
	// deltaLines is how many changes are printed in a second: as many as one can
	// just read. The rest is counted.
	deltaLines = 6
	barWidth   = 20
	// rewriteWidth is how many columns a line may have that is rewritten. Where a
	// terminal is narrower, the line wraps, and only its last row is rewritten.
	rewriteWidth = 59
)

// style is a way to print, as a terminal's SGR parameter (ECMA-48, 8.3.117).
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// display prints the show, line by line, each with the time since the start. Its
// methods may be called concurrently; they block as long as the output does.
type display struct {
	started  time.Time
	terminal bool // lines may be rewritten
	coloured bool

	mu  sync.Mutex
	out io.Writer
	// unfinished is true while the cursor is in a line that may be rewritten,
	// blank after an empty line: no second one follows it.
	unfinished, blank bool
	// shown and hidden count the changes since second, which is when the present
	// second of the limit began.
	second        time.Time
	shown, hidden int
}

// newDisplay prints to out, in colours if that is a terminal and NO_COLOR
// (https://no-color.org) is not set to anything.
func newDisplay(out io.Writer) *display {
	d := &display{out: out, started: time.Now()}
	d.second = d.started
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		d.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	d.coloured = d.terminal && os.Getenv("NO_COLOR") == ""
	return d
}

// paint puts a text in a style.
func (d *display) paint(s style, text string) string {
	if !d.coloured || s == plain {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// section begins a part of the show.
func (d *display) section(title string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushLocked()
	rule := strings.Repeat("─", max(0, width-4-utf8.RuneCountInString(title)))
	d.printLocked("")
	d.printLocked(d.paint(bold, "── "+title+" "+rule))
}

// text prints lines without a time. Nothing comes between them.
func (d *display) text(lines ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushLocked()
	for _, line := range lines {
		d.printLocked(line)
	}
}

// tell prints what has happened, with the time and a mark. It is broken into
// lines where it is too long for one.
func (d *display) tell(s style, mark, format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushLocked()
	lines := wrap(printable(fmt.Sprintf(format, args...)), width-len(d.clock())-3)
	indent := strings.Repeat(" ", len(d.clock())+1+utf8.RuneCountInString(mark)+1)
	for i, line := range lines {
		if i == 0 {
			d.printLocked(d.paint(dim, d.clock()) + " " + d.paint(s, mark+" "+line))
			continue
		}
		d.printLocked(indent + d.paint(s, line))
	}
}

// delta prints one change of an object, unless too many come at once.
func (d *display) delta(s style, mark, key, what, version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.second) >= time.Second {
		d.flushLocked()
		d.second, d.shown = now, 0
	}
	if d.shown == deltaLines {
		d.hidden++
		return
	}
	d.shown++
	line := fmt.Sprintf("%s %s %s", mark, fit(key, 38), fit(what, 22))
	d.printLocked(fmt.Sprintf("%s %s %s", d.paint(dim, d.clock()), d.paint(s, line), d.paint(dim, "v "+version)))
}

// flush prints how many changes were left out, if any, and ends a line that is
// still being rewritten.
func (d *display) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushLocked()
}

// tick is flush for a change that was left out in a second that is over.
func (d *display) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hidden > 0 && time.Since(d.second) >= time.Second {
		d.flushLocked()
	}
}

// rewrite prints a line in place of the last one on a terminal. Elsewhere it
// prints it if it is to stay.
func (d *display) rewrite(line string, stays bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.terminal:
		fmt.Fprint(d.out, "\r"+d.printable(line)+"\x1b[K")
		d.unfinished = true
	case stays:
		d.printLocked(line)
	}
}

// flushLocked is flush. The caller holds mu.
func (d *display) flushLocked() {
	hidden := d.hidden
	d.hidden = 0
	if hidden > 0 {
		d.printLocked(d.paint(dim, fmt.Sprintf("%s   … and %d more", d.clock(), hidden)))
	}
	d.endLineLocked()
}

// printLocked prints a line. The caller holds mu.
func (d *display) printLocked(line string) {
	d.endLineLocked()
	if line == "" && d.blank {
		return
	}
	d.blank = line == ""
	// Nobody is left to be told when the output is gone.
	_, _ = io.WriteString(d.out, d.printable(line)+"\n")
}

func (d *display) endLineLocked() {
	if d.unfinished {
		d.unfinished = false
		_, _ = io.WriteString(d.out, "\n")
	}
}

// clock is the time since the start, in seven columns.
func (d *display) clock() string {
	return fmt.Sprintf("%5.1f s", time.Since(d.started).Seconds())
}

// progress is a bar for a part of a whole.
func (d *display) progress(part, whole int) string {
	full := barWidth
	if whole > 0 {
		full = barWidth * part / whole
	}
	return d.paint(green, strings.Repeat("█", full)) + d.paint(dim, strings.Repeat("░", barWidth-full))
}
