package cache

// staged is a write that has been prepared without the lock: everything that
// needs user code is done, so that what is left cannot fail.
type staged struct {
	key string
	// entry is what is to be under key; nil: nothing is.
	entry *entry
	// set is the indexers that entry's values were computed for, and built its
	// values for the indexes that were being added at that time.
	set   *indexerSet
	built []staging
	// err is set if the object cannot be taken.
	err *ObjectError
}

// staging is a staged entry's values for one build.
type staging struct {
	build  *indexBuild
	result built
}

// stage prepares to put obj under key, index values aside.
func stage(key string, obj any, received Received) *staged {
	return &staged{key: key, entry: &entry{key: key, obj: obj, received: received}}
}

func (s *staged) fail(stage Stage, err error) {
	s.err = &ObjectError{Key: s.key, ResourceVersion: s.entry.received.ResourceVersion, Stage: stage, Err: err}
}

// failure returns err as an error that is nil where there is none.
func (s *staged) failure() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// index computes what is missing of the values for the indexers of set.
func (s *staged) index(set *indexerSet) {
	if s.entry == nil || s.err != nil || s.set == set {
		return
	}
	values, err := set.valuesFrom(s.entry.values, s.entry.obj)
	if err != nil {
		s.fail(StageIndex, err)
		return
	}
	s.entry.values, s.set = values, set
	before := s.built
	s.built = nil
	for _, build := range set.builds {
		s.built = append(s.built, s.stagingFor(build, before))
	}
}

func (s *staged) stagingFor(build *indexBuild, before []staging) staging {
	for _, known := range before {
		if known.build == build {
			return known
		}
	}
	return staging{build: build, result: build.compute(s.entry)}
}

// lockFor takes the lock for writing at a moment when all of the staged have
// their values for the indexers there are. It tries again only if indexers were
// added in between.
func (m *threadSafeMap) lockFor(all ...*staged) {
	for {
		set := m.indexers.Load()
		for _, s := range all {
			s.index(set)
		}
		m.mu.Lock()
		if m.indexers.Load() == set {
			return
		}
		m.mu.Unlock()
	}
}

// putLocked makes the table hold what was staged, and returns what was there.
func (m *threadSafeMap) putLocked(s *staged) (old *entry) {
	if s.entry == nil {
		old = m.table.remove(s.key)
		m.table.shrink()
		return old
	}
	for _, staging := range s.built {
		staging.build.written[s.key] = staging.result
	}
	return m.table.put(s.entry)
}

// takeLocked is putLocked for what may have failed: that leaves what was there
// and is held back. ok is false then.
func (m *threadSafeMap) takeLocked(s *staged) (old *entry, ok bool) {
	if s.err != nil {
		m.held.add(s.err)
		return m.table.entries[s.key], false
	}
	m.held.release(s.key)
	return m.putLocked(s), true
}

// keepOnlyLocked removes the entries, and forgets what is held back, under all
// keys for which keep is false.
func (m *threadSafeMap) keepOnlyLocked(keep func(key string) bool) {
	for key := range m.table.entries {
		if !keep(key) {
			m.table.remove(key)
		}
	}
	m.table.shrink()
	m.held.releaseIf(func(key string) bool { return !keep(key) })
}

// write does one prepared write.
func (m *threadSafeMap) write(s *staged) {
	m.lockFor(s)
	defer m.mu.Unlock()
	m.takeLocked(s)
}
