// The keys that a list has twice. Which of them are reported, and how is a report not repeated when
// the list is tried again?

package cache

import "maps"

// duplicateState is a state that a list had under a key beside another one.
type duplicateState struct {
	key     string
	version string
}

// collectDuplicates collects the keys that the list has twice. The changes of a stream, and a page
// that was requested again, have later states of listed keys.
func (l *listing) collectDuplicates() {
	finder, isFinder := l.replacement.(duplicateFinder)
	if !isFinder {
		return
	}
	found := finder.takeDuplicates()
	if l.strategy != ListStreaming && !l.paging.paused {
		l.duplicates = append(l.duplicates, found...)
	}
}

// reportDuplicates reports the keys that the list has twice, except the states that were reported
// with the list before it.
func (l *listing) reportDuplicates() {
	for _, duplicate := range l.duplicates.take() {
		state := duplicateState{duplicate.key, duplicate.dropped}
		if !l.duplicateStates[state] && !l.progress.duplicates[state] {
			l.run.report(duplicate)
		}
		l.duplicateStates[state] = true
	}
}

// maxKeptDuplicates bounds the states that are kept while lists fail again and again.
const maxKeptDuplicates = 1000

// keepDuplicates keeps the reported states of an aborted list, and those before it.
func (l *listing) keepDuplicates() {
	if len(l.progress.duplicates) < maxKeptDuplicates {
		maps.Copy(l.duplicateStates, l.progress.duplicates)
	}
	l.progress.duplicates = l.duplicateStates
}
