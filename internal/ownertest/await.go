package ownertest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// IsShard reports whether a name is that of a shard, which a replica leads, and not of an object.
func IsShard(name string) bool { return strings.HasPrefix(name, "shard ") }

// IsAny is a check of all names.
func IsAny(string) bool { return true }

// Shards returns the names of shards among some.
func Shards(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !IsShard(name) })
}

// Election is what replicas elect leaders for.
type Election struct {
	Shards   int
	Replicas int
	// Patience is how long Await waits.
	Patience time.Duration
}

// Await waits until these replicas, and no others, lead all shards and work on all objects. No
// replica may ever lead more shards than the others can lead without it.
func (r *Registry) Await(e Election, replicas, objects []string) error {
	wanted := slices.Clone(objects)
	for shard := range e.Shards {
		wanted = append(wanted, fmt.Sprint("shard ", shard))
	}
	slices.Sort(wanted)
	begin := time.Now()
	for {
		current := r.Current()
		var names []string
		for id, its := range current {
			if !slices.Contains(replicas, id) {
				return fmt.Errorf("replica %s works on %v", id, its)
			}
			if shards := Shards(its); len(shards) > e.Shards/(e.Replicas-1) {
				return fmt.Errorf("replica %s leads %v", id, shards)
			}
			names = append(names, its...)
		}
		slices.Sort(names)
		if slices.Equal(wanted, names) {
			return nil
		}
		if time.Since(begin) > e.Patience {
			return fmt.Errorf("not all shards and objects have a replica: %v", current)
		}
		time.Sleep(50 * time.Millisecond) // the replicas are processes
	}
}
