package cache

import (
	"sync/atomic"
	"time"
)

// What a handler is to be told and waits in the log as it came is taken out several at a time:
// to take each costs as much as to tell it. What was taken out goes on waiting until it is
// told: it counts as waiting, nobody clears the log behind it, and it goes back to be merged
// when that begins.

// aheadLen is up to how many are taken out at a time.
const aheadLen = 8

// takenAhead is what a listener has taken out at a time, oldest first.
type takenAhead struct {
	all [aheadLen]notification
	// place says whose they are: those before told are the goroutine's, which tells them, those
	// from there up to end are for who comes first.
	place aheadPlace
	// block is where the records are of what was taken out, from a number on, if there were
	// several; nil once they have gone back, or others were taken out. The listener's mu guards
	// both.
	block *logBlock
	from  uint64
}

// aheadPlace is two small numbers, changed at once: how many are told, or are being, and how
// many there are.
type aheadPlace struct{ both atomic.Uint32 }

func (p *aheadPlace) load() (told, end int) { return placesOf(p.both.Load()) }

func (p *aheadPlace) store(told, end int) { p.both.Store(uint32(told)<<16 | uint32(end)) }

func placesOf(both uint32) (told, end int) { return int(both >> 16), int(both & (1<<16 - 1)) }

// next is the next one to be told, which is the goroutine's from now on; nil if there is none.
func (a *takenAhead) next() *notification {
	for {
		both := a.place.both.Load()
		told, end := placesOf(both)
		if told == end {
			return nil
		}
		if a.place.both.CompareAndSwap(both, both+1<<16) {
			return &a.all[told]
		}
	}
}

// waiting is how many nobody has been told of, or is being.
func (a *takenAhead) waiting() int {
	told, end := a.place.load()
	return end - told
}

// oldest is since when the first of them has waited, if there is one. The caller holds the
// log's mu and the listener's.
func (a *takenAhead) oldest() (since time.Time, waits bool) {
	told, end := a.place.load()
	if told == end || a.block == nil {
		return time.Time{}, false
	}
	return a.sinceAt(told), true
}

func (a *takenAhead) sinceAt(i int) time.Time {
	return a.block.sinceAt(int(a.from-a.block.from) + i)
}

// takeBack gives those that wait to the caller, who holds the log's mu and the listener's, and
// lets go of the log: all that follows on the block would be kept for as long as the handler
// hangs. What is given is valid until mu is.
func (a *takenAhead) takeBack() []notification {
	for {
		both := a.place.both.Load()
		told, end := placesOf(both)
		if !a.place.both.CompareAndSwap(both, uint32(told)<<16|uint32(told)) {
			continue
		}
		if a.block != nil {
			for i := told; i < end; i++ {
				a.all[i].since = a.sinceAt(i)
			}
			a.block = nil
		}
		return a.all[told:end]
	}
}

// forget forgets what was told. It is the goroutine's.
func (a *takenAhead) forget() { clear(a.all[:]) }

// take takes out what is next, if there is anything: of what was taken out before, or anew.
func (l *listener) take() (n *notification, ok bool) {
	if l.gone.Load() {
		return nil, false
	}
	if n = l.ahead.next(); n != nil {
		return n, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, hadSeveral := &l.ahead, l.ahead.block != nil
	_, had := a.place.load()
	clear(a.all[:had])
	taken := l.backlog.takeSome(a.all[:])
	if a.block = nil; taken > 1 {
		p := &l.backlog.plain
		a.block, a.from = p.block, p.next-uint64(taken)
	}
	if taken > 0 || hadSeveral {
		l.noteLocked()
	}
	if taken == 0 {
		a.place.store(0, 0)
		return nil, false
	}
	a.place.store(1, taken)
	return &a.all[0], true
}

// waitingLocked is how many changes wait.
func (l *listener) waitingLocked() int { return l.ahead.waiting() + l.backlog.len() }

// oldestLocked is since when the oldest change has waited; false if none does. The caller holds
// the log's mu besides.
func (l *listener) oldestLocked() (since time.Time, waits bool) {
	if since, waits = l.ahead.oldest(); waits {
		return since, true
	}
	return l.backlog.oldest()
}
