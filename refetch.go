package cache

import (
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// An item of a list that could not be decoded may have been damaged on its way. The watch does
// not bring it again until it is next written, so it is fetched by one more list: after a pause
// of the backoff, within the limits of G13, while the watch goes on. Each version of an item has
// that once, and such lists are a minute apart: what is never decoded stays quarantined.

// refetchInterval is how far apart lists are that are made for undecoded items.
const refetchInterval = time.Minute

// undecodedItems are the versions of the items of a list that could not be decoded, by name.
// Those without a readable name cannot be told apart, and are one, without a name.
type undecodedItems map[string]string

// errRefetch ends a watch because undecoded items are to be listed once more.
var errRefetch = errors.New("items that could not be decoded are listed once more")

// refetchLater notes the undecoded items of a list that was committed, and when they are to be
// listed once more, if there are any that the list before did not have.
func (m *run) refetchLater(undecoded undecodedItems, listBegan time.Time) {
	m.stopRefetch()
	before := m.progress.undecoded
	m.progress.undecoded = undecoded
	for name, version := range undecoded {
		if known, again := before[name]; again && known == version {
			continue
		}
		if m.refetching == nil {
			m.refetching = undecodedItems{}
		}
		m.refetching[name] = version
	}
	if m.refetching == nil {
		return
	}
	now, requests := m.clock.Now(), m.requestsForState()
	if m.stream == nil {
		requests++ // the watch that is next
	}
	pause := m.progress.backoff.beside(now, failure{began: listBegan, requests: requests})
	if last := m.progress.refetched; !last.IsZero() {
		pause = max(pause, last.Add(refetchInterval).Sub(now))
	}
	m.refetch = m.clock.NewTimer(pause)
}

// refetchDue fires when undecoded items are to be listed once more.
func (m *run) refetchDue() <-chan time.Time {
	if m.refetch == nil {
		return nil
	}
	return m.refetch.C()
}

// refetchNow is errRefetch if they are to be listed now: unless the watch has brought all of
// them since. It is due again later if the limits of G13 leave no room, or if what the watch has
// sent ends that with an error, which it returns.
func (m *run) refetchNow(w *openWatch) error {
	if !m.isAnyUndecoded(m.refetching) {
		m.stopRefetch()
		return nil
	}
	now := m.clock.Now()
	if pause := m.progress.backoff.stretch(now, m.requestsForState()); pause > 0 {
		m.refetch.Reset(pause)
		return nil
	}
	klog.FromContext(m.ctx).V(2).Info("Listing once more for items that could not be decoded", "reflector", m.name, "type", m.typeDescription)
	m.progress.refetched = now
	m.stopRefetch()
	return errRefetch
}

// isAnyUndecoded says whether any of the items is still quarantined in the same version. Of one
// without a name nobody knows.
func (m *run) isAnyUndecoded(items undecodedItems) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, version := range items {
		if held, known := m.report.held.version(name); name == "" || known && held == version {
			return true
		}
	}
	return false
}

func (m *run) stopRefetch() {
	if m.refetch != nil {
		m.refetch.Stop()
	}
	m.refetch, m.refetching = nil, nil
}
