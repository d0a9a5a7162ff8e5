package cache

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// jitters are the ends and the middle of what a pause may be stretched by. At the upper
// one two pauses in a row take two minutes.
var jitters = []float64{0, 0.5, 0.999}

// healthy is how long a mirror is left alone before something happens: longer than a
// short watch, and shorter than the shortest timeout of a watch, so that one is open.
const healthy = 4 * time.Minute

// outage has a source refuse everything for d, and then until it has refused once more.
// That is when it comes back, the worst of times: the next request is a whole pause away.
func (r *rig) outage(d time.Duration, comesBack func()) {
	r.Helper()
	over := make(chan struct{})
	end := time.Now().Add(d)
	refuse := func(metav1.ListOptions) error {
		if !time.Now().Before(end) {
			r.source.Heal()
			comesBack()
			close(over)
		}
		return cachetest.ErrConnectionRefused()
	}
	r.source.OnList(refuse)
	r.source.OnWatch(refuse)
	r.source.CloseWatches()
	<-over
}

// rateSince is requestRate where the first failure was that of a watch that had lived: the
// first minute begins with it, not with the request that follows after a pause.
func rateSince(source *cachetest.Source, failed time.Time) (first, later int) {
	in := func(from time.Time) (n int) {
		for _, request := range source.Requests() {
			if after := request.Time.Sub(from); after >= 0 && after < time.Minute {
				n++
			}
		}
		return n
	}
	for _, request := range source.Requests() {
		if request.Time.Sub(failed) >= time.Minute {
			later = max(later, in(request.Time))
		}
	}
	return in(failed), later
}
