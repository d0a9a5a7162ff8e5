package soak

import (
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// faults breaks the source and the network, one way after the other.
type faults struct {
	source   *cachetest.Source
	network  *cachetest.Listener
	churn    *churn
	happened int
}

// failedRequests is more requests than mirrors make before a fault is repaired.
const failedRequests = 3

// begin begins a fault, which lasts until heal. There are eight and six an hour, so that
// each comes at each place of an hour.
func (f *faults) begin(number int) {
	f.happened++
	kinds := []func(){
		f.expired, f.cut, f.internalErrors, f.halfOpen, f.expiredList, f.tooMany, f.cutStream, f.restored,
	}
	kinds[number%len(kinds)]()
}

// heal ends whatever fault there is, one that has not met anybody yet included.
func (f *faults) heal() {
	f.churn.restored = false
	f.source.Heal()
	f.network.Heal()
}

// expired: the history is dropped, and open watches end.
func (f *faults) expired() {
	f.source.CompactAll()
	f.source.BreakWatches(cachetest.ErrExpired())
}

// cut: connections are reset, and refused for a while; without a network, watches close
// and requests are refused.
func (f *faults) cut() {
	f.source.CloseWatches()
	f.source.FailWatches(failedRequests, cachetest.ErrConnectionRefused())
	f.network.CutConnections()
	f.network.RefuseConnections(true)
}

// internalErrors: 500s, on the stream and as answers.
func (f *faults) internalErrors() {
	f.source.BreakWatches(cachetest.ErrInternal())
	f.source.FailWatches(failedRequests, cachetest.ErrInternal())
	f.source.FailLists(failedRequests, cachetest.ErrInternal())
}

// halfOpen: nothing arrives any more, and nothing ends.
func (f *faults) halfOpen() {
	f.source.Silence()
	f.network.Freeze()
}

// expiredList: lists in pages lose their place before the third page.
func (f *faults) expiredList() {
	var pages atomic.Int64
	f.source.OnList(func(options metav1.ListOptions) error {
		if options.Continue != "" && pages.Add(1) <= failedRequests {
			f.source.ExpireContinueTokens()
		}
		return nil
	})
	f.expired()
}

// tooMany: lists are refused with a pause.
func (f *faults) tooMany() {
	f.source.FailLists(failedRequests, cachetest.ErrTooManyRequests(20))
	f.expired()
}

// cutStream: streaming lists, and watches, end in the middle; those of the network in the
// middle of a frame, some of them.
func (f *faults) cutStream() {
	f.source.CloseNextWatches(failedRequests, population/2)
	f.network.CutNext(2, 20_000)
	f.source.DelayLists(time.Second)
	f.expired()
}

// restored: the source is what it was some changes ago, and its server was restarted for that. Some watches close cleanly, before the
// error: their mirrors notice it by three minutes of silence, which a fault outlasts.
func (f *faults) restored() {
	f.churn.restore()
	f.source.BreakWatches(cachetest.ErrTooManyRequests(0))
	f.network.CutConnections()
}
