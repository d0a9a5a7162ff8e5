package guarantees

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// versionRefusals are the errors with which servers refuse a version without a cause that says so, and how
// many lists they refuse before one is requested at "".
var versionRefusals = map[string]struct {
	err   error
	cause cache.Cause
	lists int
}{
	"a version that cannot be parsed, 500": {
		apierrors.NewInternalError(errors.New("strconv.ParseUint: invalid syntax")), cache.CauseInternal, 10,
	},
	"a version of the future, 500": {
		apierrors.NewInternalError(errors.New("etcdserver: mvcc: required revision is a future revision")), cache.CauseInternal, 10,
	},
	"a version of the future, 500 in words": {
		apierrors.NewInternalError(errors.New("etcd: Too large resource version: 13, current: 5")), cache.CauseVersionTooLarge, 1,
	},
	"a version that cannot be parsed, 400": {
		apierrors.NewBadRequest("invalid resource version"), cache.CauseBadRequest, 1,
	},
}

// refuseVersions makes a source refuse lists and watches at any version.
func refuseVersions(source *cachetest.Source, refusal error) {
	refuse := func(o metav1.ListOptions) error {
		if o.ResourceVersion == "" || o.ResourceVersion == "0" || o.Continue != "" {
			return nil
		}
		return refusal
	}
	source.OnList(refuse)
	source.OnWatch(refuse)
}

// G1: a source that refuses the mirror's version, but not the newest state, is mirrored within a minute. Fails if lists
// are requested at that version for ever.
func TestG1AVersionThatTheSourceRefusesIsNotRequestedForEver(t *testing.T) {
	for name, refusal := range versionRefusals {
		for listing, strategy := range strategies {
			t.Run(name+", "+listing, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := newRig(t, source, deterministic(strategy, 0.999))
					r.run()
					sleep(healthyTime)
					refuseVersions(source, refusal.err)
					source.BreakWatches(cachetest.ErrExpired())
					require.NoError(t, source.Apply(pod("a", "3")))
					sleep(time.Minute)
					r.assertEqualsSource()
					assert.Zero(t, r.errors.count(causeRegression))
					r.stop()
				})
			})
		}
	}
}

// G1: of the lists that a source refuses with internal errors, one in eleven is requested at "", which costs a server
// more. Fails if the others are too, or if none is.
func TestG1AnInternalErrorRarelyCausesAListAtTheNewestVersion(t *testing.T) {
	for name, refusal := range versionRefusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newRig(t, source, deterministic(cache.ListUnpaged, 0))
				r.run()
				sleep(healthyTime)
				source.FailRequests(cachetest.Forever, refusal.err)
				source.ResetRequests()
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Hour)
				requests := requestTexts(source)
				atVersion := fmt.Sprintf(`list "2" %s`, refusal.cause)
				atNewest := fmt.Sprintf(`list "" %s`, refusal.cause)
				round := append(slices.Repeat([]string{atVersion}, refusal.lists), atNewest)
				if refusal.cause == cache.CauseVersionTooLarge {
					round = []string{atNewest} // the source has said that it is about the version
					requests = requests[1:]
				}
				require.Greater(t, len(requests), 2*len(round))
				for i, request := range requests {
					require.Equal(t, round[i%len(round)], request, "request %d", i)
				}
				r.stop()
			})
		})
	}
}
