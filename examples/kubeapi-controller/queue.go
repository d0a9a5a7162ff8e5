package main

import (
	"context"
	"sync"
	"time"
)

// What a key that fails is made to wait for: the first time, and at most.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// queue is which keys are to be looked at, each at most once, and when. One goroutine
// takes them out; any may put them in.
type queue struct {
	wake chan struct{} // has something if a key was put in since next last looked

	mu       sync.Mutex
	due      map[string]time.Time
	failures map[string]int // in a row
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), due: map[string]time.Time{}, failures: map[string]int{}}
}

// add makes a key due now. An empty one is nobody's.
func (q *queue) add(key string) {
	if key != "" {
		q.addAfter(key, 0)
	}
}

func (q *queue) addAfter(key string, delay time.Duration) {
	q.mu.Lock()
	at := time.Now().Add(delay)
	if earlier, waits := q.due[key]; !waits || at.Before(earlier) {
		q.due[key] = at
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// done says how it went with a key. One that has failed is due again later, twice as late
// each time.
func (q *queue) done(key string, err error) {
	q.mu.Lock()
	failures := q.failures[key]
	if err == nil {
		delete(q.failures, key)
	} else {
		q.failures[key]++
	}
	q.mu.Unlock()
	if err != nil {
		q.addAfter(key, min(firstRetry<<min(failures, 10), lastRetry))
	}
}

// next takes out the key that has been due for longest. It waits for one; false means
// that ctx has ended.
func (q *queue) next(ctx context.Context) (string, bool) {
	for ctx.Err() == nil {
		key, left := q.take()
		if key != "" && left <= 0 {
			return key, true
		}
		var timer <-chan time.Time // never, if nothing waits
		if key != "" {
			timer = time.After(left)
		}
		select {
		case <-q.wake:
		case <-timer:
		case <-ctx.Done():
		}
	}
	return "", false
}

// take returns the key that is or will be due first, if there is one, and in how long. If
// that is now, the key is out.
func (q *queue) take() (key string, left time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for candidate, at := range q.due {
		if key == "" || at.Before(q.due[key]) {
			key = candidate
		}
	}
	if key == "" {
		return "", 0
	}
	left = time.Until(q.due[key])
	if left <= 0 {
		delete(q.due, key)
	}
	return key, left
}
