package integration

import (
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/integration/faultproxy"
	"github.com/watchmirror/cache/kubeapi"
)

var (
	objects = flag.Int("objects", 150, "objects in each test of a fault")
	longer  = flag.Duration("longer", 0, "how much longer each fault lasts")
	all     = flag.Bool("all", false, "run all faults, not only the short form's")
)

// fault is one case: what happens to requests and watches, and for how long.
type fault struct {
	name string
	plan []faultproxy.Fault
	// lasts is how long the fault is on, default 3 s.
	lasts time.Duration
	// within is how long the cache may take after the fault, which is judged with -all only.
	// Default: 10 s, the longest pause of the first minute, a list, and some time for a busy
	// machine.
	within time.Duration
	// long faults are no part of the short form.
	long bool
	// stuck: only kubeapi converges; client-go's client waits for the watch's end, up to ten and a half minutes here.
	stuck bool
}

// everywhere are fractions of a frame, from its type to its end.
var everywhere = []float64{0.001, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.999}

func status(code int) []faultproxy.Fault { return []faultproxy.Fault{{Status: code}} }

// expire makes a reflector list: its watch ends with "expired".
var expire = faultproxy.Fault{Watches: true, Then: faultproxy.Error, Code: http.StatusGone}

var faults = []fault{
	{name: "cut after 3 events", plan: []faultproxy.Fault{{Watches: true, Events: 3, Then: faultproxy.Cut}}},
	{name: "cut inside a frame", plan: []faultproxy.Fault{{Watches: true, Events: 3, Then: faultproxy.CutInside}}},
	{name: "clean end after 3 events", plan: []faultproxy.Fault{{Watches: true, Events: 3, Then: faultproxy.End}}},
	{name: "zero byte in an event, at many places", plan: []faultproxy.Fault{{Watches: true, Events: 2, Then: faultproxy.Zero, Damage: everywhere}}},
	{name: "lost quotation mark in an event, at many places", plan: []faultproxy.Fault{{Watches: true, Events: 2, Then: faultproxy.Quote, Damage: everywhere}}},
	{name: "silence of 5 s between events", plan: []faultproxy.Fault{{Watches: true, Events: 3, Then: faultproxy.Silence}}, lasts: 5 * time.Second},
	{name: "watch frozen inside a frame", plan: []faultproxy.Fault{{Watches: true, Events: 3, Then: faultproxy.Freeze}}, lasts: time.Second, within: 20 * time.Second, stuck: true},
	{name: "requests dropped", plan: []faultproxy.Fault{{Drop: true}}},
	{name: "connections refused", plan: []faultproxy.Fault{{Refuse: true}}},
	{name: "requests and events delayed by 100 ms", plan: []faultproxy.Fault{{Delay: 100 * time.Millisecond}}, within: 20 * time.Second},
	{name: "slow start: requests answered after 4 s", plan: []faultproxy.Fault{{Delay: 4 * time.Second}}, lasts: 5 * time.Second, within: 20 * time.Second, long: true},
	{name: "401", plan: status(http.StatusUnauthorized)},
	{name: "403", plan: status(http.StatusForbidden)},
	{name: "404", plan: status(http.StatusNotFound)},
	{name: "410", plan: status(http.StatusGone)},
	{name: "410 in the watch", plan: []faultproxy.Fault{expire}},
	{name: "429 with Retry-After 2", plan: []faultproxy.Fault{{Status: http.StatusTooManyRequests, RetryAfter: 2}}},
	{name: "500", plan: status(http.StatusInternalServerError)},
	{name: "500 in the watch", plan: []faultproxy.Fault{{Watches: true, Events: 3, Then: faultproxy.Error, Code: http.StatusInternalServerError}}},
	{name: "503 for 15 s", plan: status(http.StatusServiceUnavailable), lasts: 15 * time.Second, long: true},
	{name: "events twice", plan: []faultproxy.Fault{{Watches: true, Twice: true}}},
	{name: "streaming list without its bookmark", plan: []faultproxy.Fault{expire, {Watches: true, NoBookmarks: true}}, within: 20 * time.Second},
	{name: "lists and streaming lists cut", plan: []faultproxy.Fault{expire, {Events: 20, Then: faultproxy.Cut, Bytes: 3000}}},
	{name: "lists and streaming lists damaged", plan: []faultproxy.Fault{expire, {Events: 20, Then: faultproxy.Zero, Damage: everywhere, DamagedList: 0.5}}},
	{name: "mixture of cuts, refusals and expired versions", plan: []faultproxy.Fault{
		{Watches: true, Events: 3, Then: faultproxy.CutInside}, {Status: http.StatusInternalServerError}, {Drop: true}, expire,
	}},
	{name: "mixture of cuts and refusals", lasts: 8 * time.Second, plan: []faultproxy.Fault{
		{Watches: true, Events: 3, Then: faultproxy.CutInside}, {Status: http.StatusInternalServerError}, {Drop: true},
		{Watches: true, Events: 5, Then: faultproxy.End}, {Status: http.StatusServiceUnavailable, RetryAfter: 1}, expire,
	}, long: true},
	{name: "mixture of damage and delay", lasts: 8 * time.Second, plan: []faultproxy.Fault{
		{Watches: true, Events: 2, Then: faultproxy.Quote, Damage: everywhere, Twice: true}, {Delay: 50 * time.Millisecond, Events: 30, Then: faultproxy.Cut},
		expire, {Watches: true, NoBookmarks: true, Events: 10, Then: faultproxy.End}, {Watches: true, Events: 1, Then: faultproxy.Zero, Damage: everywhere},
	}, long: true},
}

// TestACacheConvergesAfterEachFault has objects under churn. The time counts from the end of the
// fault and of the churn.
func TestACacheConvergesAfterEachFault(t *testing.T) {
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if f.long && !*all {
				t.Skip("part of -all")
			}
			t.Parallel()
			inTime(t, func(t *testing.T, pass int) *line { return f.run(t, common.in(t, fmt.Sprintf("fault-%d-%d", i, pass))) })
		})
	}
}

func (f fault) outage() time.Duration { return max(f.lasts, 3*time.Second) }

func (f fault) run(t *testing.T, r *rig) *line {
	r.create(t, 0, *objects)
	mirrors, proxies := behind(t, r, reading{})
	if f.stuck {
		mirrors[1].patience = clientGoLimit
	}
	for _, m := range mirrors {
		m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	}
	stop := r.churn(t, *objects*4/3, 5*time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	for _, p := range proxies {
		require.NoError(t, p.Turn(f.plan...))
	}
	time.Sleep(f.outage() + *longer)
	for _, p := range proxies {
		if !f.plan[0].Refuse { // which a proxy cannot count
			waitHits(t, p, 1)
		}
		require.NoError(t, p.Turn())
	}
	stop()
	l := measure(t, f.name, r, mirrors, proxies)
	l.require(t, "kubeapi")
	if !f.stuck {
		l.require(t, "adapter")
	}
	if *all {
		require.Less(t, l.took[0], max(f.within, 10*time.Second), "kubeapi")
	}
	// The adapter's client repeats requests by itself.
	require.LessOrEqual(t, l.counts[0].Total(), budget(began), "requests of kubeapi; %s", mirrors[0].allFailures())
	return l
}

// TestADamagedByteAnywhereCostsNoEvent damages one byte of one event, and ends in content that is
// compared byte by byte.
func TestADamagedByteAnywhereCostsNoEvent(t *testing.T) {
	const places = 24
	for kind, act := range map[string]faultproxy.Act{"zero byte": faultproxy.Zero, "lost quotation mark": faultproxy.Quote} {
		for place := range places {
			t.Run(fmt.Sprintf("%s at %d of %d", kind, place, places), func(t *testing.T) {
				t.Parallel()
				r := common.in(t, fmt.Sprint("damage-", act, "-", place))
				r.create(t, 0, 3)
				proxy := newProxy(t, r.cluster.Config())
				m := overKubeapi(t, r.source(t, func(o *kubeapi.Options) { o.BaseURL = proxy.URL }), nil).start(t)
				m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
				require.NoError(t, proxy.Turn(faultproxy.Fault{Watches: true, Events: 0, Then: act, Damage: []float64{float64(place) / (places - 1)}}))
				r.paint(t, 1, "red")
				waitHits(t, proxy, 1)
				require.NoError(t, proxy.Turn())
				r.delete(t, 2)
				m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
			})
		}
	}
}
