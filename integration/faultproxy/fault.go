// Package faultproxy is an HTTP proxy in front of an API server that fails on purpose: it refuses,
// delays and cuts requests, and cuts, damages, repeats or withholds the events of watches.
package faultproxy

import "time"

// Fault is what a proxy does to requests and watches while the fault is on. The zero value does
// nothing.
type Fault struct {
	// Lists and Watches limit the fault to one of the two; without either it is for both. A
	// streaming list is a watch.
	Lists, Watches bool

	// Refuse: the port is closed.
	Refuse bool
	// Drop closes the connection of a request instead of an answer.
	Drop bool
	// Status answers requests with this code and a Status, RetryAfter with that header, in seconds.
	Status, RetryAfter int
	// Delay passes on each request, and each event, later.
	Delay time.Duration
	// Bytes cuts the body of a list after so many.
	Bytes int
	// DamagedList damages the byte of a list at this fraction of its body.
	DamagedList float64

	// Events pass on each watch before Then happens to it.
	Events int
	Then   Act
	// Damage has the fractions of a frame at which a byte is damaged, one for each watch.
	Damage []float64
	// Code is that of Then: Error.
	Code int
	// Twice sends each event twice.
	Twice bool
	// NoBookmarks withholds bookmarks, also the one that ends a streaming list.
	NoBookmarks bool
}

// Act is what happens to a watch.
type Act int

const (
	// Nothing happens.
	Nothing Act = iota
	// Cut closes the connection between two events.
	Cut
	// CutInside closes it in the middle of a frame.
	CutInside
	// End ends the watch as a server does.
	End
	// Zero replaces one byte of a frame by a zero byte, Quote the next quotation mark by a letter.
	Zero
	Quote
	// Error ends the watch with an error event.
	Error
	// Silence sends nothing until the fault ends; then what the server has sent meanwhile.
	Silence
	// Freeze sends half a frame, and nothing ever after.
	Freeze
	// Lose withholds events.
	Lose
)

// of reports whether the fault is for lists or for watches.
func (f *Fault) of(watch bool) bool {
	return f.Lists == f.Watches || f.Watches == watch
}
