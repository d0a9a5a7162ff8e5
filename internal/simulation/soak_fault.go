package simulation

import (
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// soakFaults breaks the source and the network, one way after the other.
type soakFaults struct {
	source   *cachetest.Source
	network  *cachetest.Listener
	churn    *soakChurn
	happened int
}

// soakMany is more requests than mirrors make before a fault is repaired.
const soakMany = 3

// begin begins a fault, which lasts until heal. There are eight and six an hour, so that
// each comes at each place of an hour.
func (f *soakFaults) begin(number int) {
	f.happened++
	kinds := []func(){
		f.expired, f.cut, f.internalErrors, f.halfOpen, f.expiredList, f.tooMany, f.cutStream, f.restored,
	}
	kinds[number%len(kinds)]()
}

// heal ends whatever fault there is, one that has not met anybody yet included.
func (f *soakFaults) heal() {
	f.churn.restored = false
	f.source.Heal()
	f.network.Heal()
}

// expired: the history is dropped, and open watches end.
func (f *soakFaults) expired() {
	f.source.CompactAll()
	f.source.BreakWatches(cachetest.ErrExpired())
}

// cut: connections are reset, and refused for a while; without a network, watches close
// and requests are refused.
func (f *soakFaults) cut() {
	f.source.CloseWatches()
	f.source.FailWatches(soakMany, cachetest.ErrConnectionRefused())
	f.network.CutConnections()
	f.network.RefuseConnections(true)
}

// internalErrors: 500s, on the stream and as answers.
func (f *soakFaults) internalErrors() {
	f.source.BreakWatches(cachetest.ErrInternal())
	f.source.FailWatches(soakMany, cachetest.ErrInternal())
	f.source.FailLists(soakMany, cachetest.ErrInternal())
}

// halfOpen: nothing arrives any more, and nothing ends.
func (f *soakFaults) halfOpen() {
	f.source.Silence()
	f.network.Freeze()
}

// expiredList: lists in pages lose their place before the third page.
func (f *soakFaults) expiredList() {
	var pages atomic.Int64
	f.source.OnList(func(options metav1.ListOptions) error {
		if options.Continue != "" && pages.Add(1) <= soakMany {
			f.source.ExpireContinueTokens()
		}
		return nil
	})
	f.expired()
}

// tooMany: lists are refused with a pause.
func (f *soakFaults) tooMany() {
	f.source.FailLists(soakMany, cachetest.ErrTooManyRequests(20))
	f.expired()
}

// cutStream: streaming lists, and watches, end in the middle; those of the network in the
// middle of a frame, some of them.
func (f *soakFaults) cutStream() {
	f.source.CloseNextWatches(soakMany, soakPopulation/2)
	f.network.CutNext(2, 20_000)
	f.source.DelayLists(time.Second)
	f.expired()
}

// restored: the source is what it was some changes ago, and its server was restarted for that. Some watches close cleanly, before the
// error: their mirrors notice it by three minutes of silence, which a fault outlasts.
func (f *soakFaults) restored() {
	f.churn.restore()
	f.source.BreakWatches(cachetest.ErrTooManyRequests(0))
	f.network.CutConnections()
}
