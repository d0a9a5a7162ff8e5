package cache

// highestVersion is a version that none of those is above which a store has received, if it
// is kept: what comes with no lower one is older than nothing in the store, and nobody need
// look at the object that it replaces, which as a rule is not in the processor's cache. That
// is so of nearly every event, for a source counts upwards.
//
// It is high enough, and may be higher than need be: what had it may have gone since. The
// order is that of sortsBefore, so that it holds for versions of any kind. Who holds the
// store's writing reads and changes it.
type highestVersion struct {
	// kept is true for a store that an informer feeds: nobody else asks.
	kept    bool
	version string
}

func (h *highestVersion) raise(version string) {
	if h.kept && sortsBefore(h.version, version) {
		h.version = version
	}
}

// highestVersion is that of all there is, and of all that anybody has seen there before.
func (m *threadSafeMap) highestVersion() string {
	m.writing.Lock()
	version := m.highest.version
	m.writing.Unlock()
	return version
}

// sortsBefore orders all texts, the shorter first, and well-formed versions as their numbers
// are: they have no zeros before them.
func sortsBefore(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
