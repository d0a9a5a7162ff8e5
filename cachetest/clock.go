package cachetest

import "time"

// clock has the timers of a watch. A channel is nil if there is no such timer.
type clock struct {
	timer    *time.Timer
	ticker   *time.Ticker
	closing  *time.Timer
	deadline <-chan time.Time
	bookmark <-chan time.Time
	// last fires for the additional bookmark shortly before the deadline.
	last <-chan time.Time
	// due is the deadline; zero if there is none.
	due time.Time
	// late is set if the deadline passed while the watch was silent.
	late bool
}

// lastBookmark is how long before its timeout a watch gets one more bookmark, as on an API server.
const lastBookmark = 2 * time.Second

func (w *stream) startClock() *clock {
	c := &clock{}
	if t := w.options.TimeoutSeconds; t != nil && *t > 0 && !w.source.options.IgnoreTimeouts {
		c.due = time.Now().Add(time.Duration(*t) * time.Second)
		c.timer = time.NewTimer(time.Until(c.due))
		c.deadline = c.timer.C
	}
	if d := w.source.options.bookmarkInterval(); d > 0 && w.options.AllowWatchBookmarks {
		c.ticker = time.NewTicker(d)
		c.bookmark = c.ticker.C
		if !c.due.IsZero() && time.Until(c.due) > lastBookmark {
			c.closing = time.NewTimer(time.Until(c.due) - lastBookmark)
			c.last = c.closing.C
		}
	}
	return c
}

// deadlinePassed compares times, because a timer due at the same instant may not have fired yet.
func (c *clock) deadlinePassed() bool { return !c.due.IsZero() && !time.Now().Before(c.due) }

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.ticker != nil {
		c.ticker.Stop()
	}
	if c.closing != nil {
		c.closing.Stop()
	}
}
