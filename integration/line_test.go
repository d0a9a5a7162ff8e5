package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/integration/faultproxy"
)

// line is how long each mirror took to converge after a fault.
type line struct {
	fault   string
	mirrors []*mirror
	want    map[string]*object
	took    []time.Duration
	done    []bool
	counts  []faultproxy.Counts
}

// clientGoLimit is how long client-go, or its client, may take: where it never converges, the test
// need not wait longer.
const clientGoLimit = 15 * time.Second

// inTime runs a case until kubeapi has converged within client-go's time and a second, and the
// adapter too: three passes at most. A mirror whose only company is one that never converges is in
// time. The short form has one pass, in which it judges no time: CI's machine is busy.
func inTime(t *testing.T, run func(t *testing.T, pass int) *line) {
	var names []string
	passes := 1
	if *all {
		names, passes = []string{"kubeapi", "adapter"}, 3
	}
	var lines []*line
	for pass := range passes {
		if !t.Run(fmt.Sprint("pass ", pass+1), func(t *testing.T) { lines = append(lines, run(t, pass)) }) {
			return // it has failed
		}
		if names = slices.DeleteFunc(names, func(name string) bool { return lines[pass].inTime(name) }); len(names) == 0 {
			return
		}
	}
	require.Empty(t, names, "later than client-go and a second in each of %d passes: %v", passes, lines)
}

func (l *line) inTime(name string) bool {
	its := slices.IndexFunc(l.mirrors, func(m *mirror) bool { return m.name == name })
	clientGo := slices.IndexFunc(l.mirrors, func(m *mirror) bool { return m.name == "client-go" })
	return !l.done[clientGo] || l.took[its] <= l.took[clientGo]+time.Second
}

// measure waits until each mirror equals the server, which is quiet.
func measure(t *testing.T, fault string, r *rig, mirrors []*mirror, proxies []*faultproxy.Proxy) *line {
	begin := time.Now()
	l := &line{
		fault: fault, mirrors: mirrors, want: r.objects(t, metav1.ListOptions{}),
		took: make([]time.Duration, len(mirrors)), done: make([]bool, len(mirrors)),
	}
	var all sync.WaitGroup
	for i, m := range mirrors {
		ctx := within(t, m.patience)
		all.Go(func() {
			_, l.done[i] = m.converged(ctx, l.want)
			l.took[i] = time.Since(begin)
		})
	}
	all.Wait()
	for _, p := range proxies {
		l.counts = append(l.counts, p.Counts())
	}
	t.Log(l)
	for i, m := range mirrors {
		if m.ours && l.took[i] > 5*time.Second {
			t.Logf("%s, from %s on:\n%s", m.name, begin.Format("05.000"), m.allFailures())
		}
	}
	return l
}

func (l *line) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "T | %s", l.fault)
	for i, m := range l.mirrors {
		took := fmt.Sprintf("%.2f s", l.took[i].Seconds())
		if !l.done[i] {
			took = "never"
		}
		fmt.Fprintf(&text, " | %s %s, %d lists, %d watches", m.name, took, l.counts[i].Lists, l.counts[i].Watches)
	}
	return text.String()
}

// require fails if one of the named mirrors differs from the server in any object, or the view of
// its handler does.
func (l *line) require(t *testing.T, names ...string) {
	t.Helper()
	for i, m := range l.mirrors {
		if !slices.Contains(names, m.name) {
			continue
		}
		assert.True(t, l.done[i], "%s took more than %s: %s", m.name, patience, m.lastFailure())
		assert.Empty(t, differences(m.content(), l.want), "%s: cache and server", m.name)
		assert.Empty(t, differences(m.view.content(), l.want), "%s: a handler's view and the server", m.name)
		assert.Empty(t, m.view.mistakes, m.name)
		m.requireNoQuarantine(t)
	}
	require.False(t, t.Failed())
}
