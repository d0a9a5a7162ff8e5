package cachetest

import "time"

// clock holds the timers of a watch. Its channels are nil where there is none.
type clock struct {
	timer    *time.Timer
	ticker   *time.Ticker
	deadline <-chan time.Time
	bookmark <-chan time.Time
	// late: the deadline passed while the watch was silent.
	late bool
}

func (w *stream) startClock() *clock {
	c := &clock{}
	if t := w.options.TimeoutSeconds; t != nil && *t > 0 && !w.source.options.IgnoreTimeouts {
		c.timer = time.NewTimer(time.Duration(*t) * time.Second)
		c.deadline = c.timer.C
	}
	if d := w.source.options.bookmarkInterval(); d > 0 && w.options.AllowWatchBookmarks {
		c.ticker = time.NewTicker(d)
		c.bookmark = c.ticker.C
	}
	return c
}

func (c *clock) deadlinePassed() bool {
	select {
	case <-c.deadline:
		return true
	default:
		return false
	}
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.ticker != nil {
		c.ticker.Stop()
	}
}
