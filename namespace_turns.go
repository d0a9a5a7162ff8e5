package cache

import "context"

// turns lets one at a time: the consumers of several namespaces share a handler,
// and no object of the store changes while it runs. Whoever waits gets the turn in the
// order in which they came, so that a busy namespace does not starve a quiet one.
// The zero value is for one that is alone and never waits.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// begin waits for the turn. It returns false, without the turn, if ctx has ended.
func (t turns) begin(ctx context.Context) bool {
	if t != nil {
		select {
		case <-ctx.Done():
			return false
		case t <- struct{}{}:
		}
	}
	if ctx.Err() != nil {
		t.end()
		return false
	}
	return true
}

// end gives the turn back. It does not wait.
func (t turns) end() {
	if t != nil {
		<-t
	}
}
