// Package numbered makes default names differ, so that a log line names one informer.
package numbered

import (
	"fmt"
	"sync"
)

// Names are the names that were given. The zero value is ready to use. A number is never given
// twice, because lines of a log stay: it would name another informer then. The memory is bounded by
// the number of different names, not by how often they are given. Names may be used concurrently.
type Names struct {
	mu    sync.Mutex
	given map[string]int
}

// Give returns name the first time, and then name#2, name#3 and so on.
func (n *Names) Give(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.given == nil {
		n.given = map[string]int{}
	}
	n.given[name]++
	count := n.given[name]
	if count == 1 {
		return name
	}
	return fmt.Sprintf("%s#%d", name, count)
}
