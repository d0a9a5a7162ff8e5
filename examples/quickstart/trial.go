package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxFailures of a stage before the server is given up. A mirror that is part of
	// a service would go on for ever; somebody who waits at a terminal has mistyped
	// an address.
	maxFailures = 3
	// maxSilence is how long nothing may come in answer to a request meanwhile.
	maxSilence = 10 * time.Second
	// maxPause is the longest pause that a server may ask for meanwhile.
	maxPause = time.Minute
	// leastForWatch is how long the first watch may take however short the show is.
	leastForWatch = 2 * time.Second
)

// stage is what a server has to prove, one after the other: that it lists, and that
// it lets the mirror watch. Rights to these are given one by one.
type stage int

const (
	stageList stage = iota
	stageWatch
)

func (s stage) String() string {
	if s == stageWatch {
		return "watch"
	}
	return "list"
}

// trial is a server's time to prove itself: until its first watch is open. Its
// methods may be called concurrently, wait by one only.
type trial struct {
	given settings
	// slow, if set, hears once of a watch that is not answered. Some proxies hold
	// the answer back until the first event, so that this alone proves nothing.
	slow func()
	// moved is full if something has happened since wait last looked.
	moved chan struct{}

	mu       sync.Mutex
	stage    stage
	failures int // in this stage
	// last is why the last request failed; nil once the next one is sent.
	last error
	// sign is when the server last gave one, or was asked; zero while no request is
	// under way. Pauses between requests are the mirror's, and no silence.
	sign time.Time
}

// newTrial is that of the server and the resource that are given.
func newTrial(given settings) *trial {
	return &trial{given: given, moved: make(chan struct{}, 1)}
}

// asked notes that a request is sent.
func (t *trial) asked(s stage) {
	t.note(func() {
		if s > t.stage {
			t.stage, t.failures = s, 0
		}
		t.last, t.sign = nil, time.Now()
	})
}

// heard notes that a part of the answer has come.
func (t *trial) heard() { t.note(func() { t.sign = time.Now() }) }

// answered notes that the whole answer has come; of a watch, that it is open.
func (t *trial) answered() { t.note(func() { t.sign = time.Time{} }) }

// failed notes that a request has failed.
func (t *trial) failed(err error) {
	t.note(func() {
		t.failures++
		t.last, t.sign = err, time.Time{}
	})
}

func (t *trial) note(change func()) {
	t.mu.Lock()
	change()
	t.mu.Unlock()
	select {
	case t.moved <- struct{}{}:
	default: // wait has yet to look
	}
}

// wait returns nil once proven is closed, errInterrupted if ctx ends first, and
// otherwise why this server cannot be mirrored: it failed in the stage, or the limit
// has passed, of which 0 means none.
func (t *trial) wait(ctx context.Context, s stage, proven <-chan struct{}, limit time.Duration) error {
	silence := time.NewTimer(maxSilence)
	defer silence.Stop()
	var end <-chan time.Time
	if limit > 0 {
		end = time.After(limit)
	}
	for told := false; ; {
		select {
		case <-proven: // then what has happened since is not of this stage
			return nil
		default:
		}
		silentAt, err := t.judge(s)
		if err != nil {
			return err
		}
		var silent <-chan time.Time
		switch left := time.Until(silentAt); {
		case silentAt.IsZero() || told:
		case left > 0:
			silence.Reset(left)
			silent = silence.C
		case s == stageWatch:
			told = true
			t.slow()
		default:
			return t.verdict(fmt.Sprintf("it has sent nothing for %v", maxSilence), nil)
		}
		select {
		case <-proven:
			return nil
		case <-ctx.Done():
			return errInterrupted
		case <-end:
			return t.late(s, limit)
		case <-t.moved:
		case <-silent:
		}
	}
}

// judge returns the verdict if the stage has failed, and otherwise when the silence
// will have lasted too long, zero if there is none.
func (t *trial) judge(s stage) (silentAt time.Time, verdict error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.stage != s:
		// The list was taken, although not all of it is in the store yet; what
		// becomes of the watch is judged by the wait for that.
		return time.Time{}, nil
	case t.last != nil && (t.failures >= maxFailures || isFinal(t.last) || pauseAskedBy(t.last) > maxPause):
		return time.Time{}, t.verdict(advice(t.last, s, t.given), t.last)
	case t.sign.IsZero():
		return time.Time{}, nil
	}
	return t.sign.Add(maxSilence), nil
}

// late is the verdict when the limit has passed.
func (t *trial) late(s stage, limit time.Duration) error {
	t.mu.Lock()
	last := t.last
	t.mu.Unlock()
	return t.verdict(fmt.Sprintf("the %v was not answered in %v; a proxy in between may hold the answer back until something changes",
		s, limit), last)
}

func (t *trial) verdict(why string, err error) error {
	verdict := fmt.Sprintf("cannot mirror %s from %s:\n  %s", t.given.resource.Resource, t.given.server, why)
	if err != nil {
		return fmt.Errorf("%s\n  %w", verdict, err)
	}
	return errors.New(verdict)
}
