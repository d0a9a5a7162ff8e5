package recording

// What a Delivery may be, beside an Event, a Bookmark and a Step.
const (
	// Whole is a list that came in one piece.
	Whole = "whole"
	// Begin, Part, Removed, Commit and Abort are those of a list in pages, or of a stream that
	// begins with one. Removed is an object that an earlier part has brought.
	Begin   = "begin"
	Part    = "part"
	Removed = "removed"
	Commit  = "commit"
	Abort   = "abort"
)

// Delivery is what a reflector makes of lines of its source: the handling of lists that
// come in pieces. Its Do is one of the above, Event, Bookmark or Step.
type Delivery struct {
	Line
	// Last is true for the last one at its moment: time passes before the next.
	Last bool
}

// Deliveries turns the lines of one source into deliveries.
func Deliveries(lines []Line) []Delivery {
	var d deliverer
	for _, line := range lines {
		d.take(line)
	}
	for i := range d.out {
		d.out[i].Last = i+1 == len(d.out) || d.out[i+1].At > d.out[i].At
	}
	return d.out
}

type deliverer struct {
	out []Delivery
	// open is true between Begin and Commit or Abort; streams, if it is a stream.
	open, streams bool
}

func (d *deliverer) add(do string, line Line) {
	line.Do = do
	d.out = append(d.out, Delivery{Line: line})
}

func (d *deliverer) begin(line Line) {
	d.open = true
	d.add(Begin, Line{At: line.At, Source: line.Source})
}

// end ends a list that is under way, if one is.
func (d *deliverer) end(do string, line Line) {
	if d.open {
		d.add(do, Line{At: line.At, Source: line.Source, Version: line.Version})
	}
	d.open, d.streams = false, false
}

func (d *deliverer) take(line Line) {
	switch line.Do {
	case Step:
		d.add(Step, line)
	case List:
		if !line.Ask.Continue {
			d.end(Abort, line)
		}
	case Watch:
		d.end(Abort, line)
		if line.Ask.Streaming {
			d.begin(line)
			d.streams = true
		}
	case Listed:
		d.listed(line)
	case Event:
		d.event(line)
	case Bookmark:
		switch {
		case !d.streams:
			d.add(Bookmark, line)
		case !line.More:
			d.end(Commit, line)
		}
	case Refused, Failed, Ended:
		// The next page of a list may be asked for again.
		if d.streams {
			d.end(Abort, line)
		}
	}
}

func (d *deliverer) listed(line Line) {
	switch {
	case !d.open && !line.More:
		d.add(Whole, line)
		return
	case !d.open:
		d.begin(line)
	}
	d.add(Part, line)
	if !line.More {
		d.end(Commit, line)
	}
}

// event is a change or, of a stream that still begins, a part. What comes at once makes one
// part.
func (d *deliverer) event(line Line) {
	if !d.streams {
		d.add(Event, line)
		return
	}
	if line.Type == "DELETED" {
		d.add(Removed, line)
		return
	}
	if n := len(d.out); n > 0 && d.out[n-1].Do == Part && d.out[n-1].At == line.At {
		d.out[n-1].Objects = append(d.out[n-1].Objects, line.Objects...)
		return
	}
	line.Objects = append([]Object(nil), line.Objects...)
	d.add(Part, line)
}
