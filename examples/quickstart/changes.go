package main

import (
	"fmt"
	"io"
	"time"
)

// printedChanges is how many changes are printed one by one. Later ones are counted.
const printedChanges = 5

// changeLog prints the first changes, and then once a second how many there were. An informer calls
// a handler from one goroutine.
type changeLog struct {
	out      io.Writer
	count    int
	reported int
	since    time.Time
}

func (c *changeLog) add(text string) {
	c.count++
	if c.count <= printedChanges {
		fmt.Fprintln(c.out, "  "+text)
		c.reported = c.count
		c.since = time.Now()
		return
	}
	if time.Since(c.since) < time.Second {
		return
	}
	fmt.Fprintf(c.out, "  %d more changes\n", c.count-c.reported)
	c.reported = c.count
	c.since = time.Now()
}
