package sharding

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Lease is an entry in a store of leases.
type Lease struct {
	// Name is unique in the store: lower-case letters, digits and dashes.
	Name string
	// Holder is the replica that has the lease. Duration is how long it lasts after each Put; 0 means that it does not
	// expire.
	Holder   string
	Duration time.Duration
	// Version is the version of the stored state, which changes with each Put. It is empty to create a lease.
	Version string
}

// ErrLeaseConflict is wrapped by the errors of Put and Delete if the stored lease has another version.
var ErrLeaseConflict = errors.New("lease was changed meanwhile")

// Leases is a store of leases for one group of replicas. Its methods may be called concurrently, return when their
// context ends, and are linearizable: each sees all changes that had returned before it was called. After an error
// other than ErrLeaseConflict a change may have been made.
type Leases interface {
	// List returns all leases at one point in time.
	List(ctx context.Context) ([]Lease, error)
	// Put creates a lease, if Version is empty and the name is free, or replaces the stored one, if it has this
	// Version. It returns the new version. Replacing a lease by an equal one renews it.
	Put(ctx context.Context, lease Lease) (version string, err error)
	// Delete removes the lease with this name, if it has this Version.
	Delete(ctx context.Context, lease Lease) error
}

// MemoryLeases is a store of leases in memory, for replicas in one process, tests, and servers. The zero value is ready
// to use and must not be copied.
type MemoryLeases struct {
	mu     sync.Mutex
	leases []Lease
	last   int
}

// List implements Leases.
func (m *MemoryLeases) List(ctx context.Context) ([]Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.leases), ctx.Err()
}

// Put implements Leases.
func (m *MemoryLeases) Put(ctx context.Context, lease Lease) (version string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.indexLocked(lease)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case at < 0 && lease.Version == "":
		at = len(m.leases)
		m.leases = append(m.leases, lease)
	case at < 0 || lease.Version != m.leases[at].Version:
		return "", ErrLeaseConflict
	}
	m.last++
	lease.Version = strconv.Itoa(m.last)
	m.leases[at] = lease
	return lease.Version, nil
}

// Delete implements Leases.
func (m *MemoryLeases) Delete(ctx context.Context, lease Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.indexLocked(lease)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case at < 0 || lease.Version != m.leases[at].Version:
		return ErrLeaseConflict
	}
	m.leases = slices.Delete(m.leases, at, at+1)
	return nil
}

// storedLeases is the JSON form of MemoryLeases, for stores that keep all leases of a group in one value.
type storedLeases struct {
	Last   int
	Leases []Lease
}

// MarshalJSON encodes all leases and the last version.
func (m *MemoryLeases) MarshalJSON() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Marshal(storedLeases{m.last, m.leases})
}

// UnmarshalJSON replaces all leases by those in the result of MarshalJSON.
func (m *MemoryLeases) UnmarshalJSON(text []byte) error {
	var s storedLeases
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last, m.leases = s.Last, s.Leases
	return nil
}

func (m *MemoryLeases) indexLocked(lease Lease) int {
	return slices.IndexFunc(m.leases, func(l Lease) bool { return l.Name == lease.Name })
}
