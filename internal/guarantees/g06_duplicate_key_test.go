package guarantees

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

const causeDuplicateKey cache.Cause = "duplicate-key"

// keptNewer are the reports of a list that has key a/x twice.
func keptNewer(kept, dropped string) []string {
	return []string{fmt.Sprintf(`list has key "a/x" twice: kept the state%s, dropped the one%s`, kept, dropped)}
}

// duplicateKeys are two states that a list has under one key.
var duplicateKeys = map[string]struct {
	first, second apiruntime.Object
	// kept is the version that counts.
	kept    string
	reports []string
}{
	"one state":               {validPod("x", "7"), validPod("x", "7"), "7", nil},
	"older, then newer":       {validPod("x", "5"), validPod("x", "7"), "7", keptNewer(" at version 7", " at version 5")},
	"newer, then older":       {validPod("x", "7"), validPod("x", "5"), "7", keptNewer(" at version 7", " at version 5")},
	"of more digits, first":   {validPod("x", "10"), validPod("x", "9"), "10", keptNewer(" at version 10", " at version 9")},
	"created again":           {validPod("x", "5"), withUID(validPod("x", "7"), "2"), "7", keptNewer(" at version 7", " at version 5")},
	"created again, reversed": {withUID(validPod("x", "7"), "2"), validPod("x", "5"), "7", keptNewer(" at version 7", " at version 5")},
	"not decimal":             {validPod("x", "b"), validPod("x", "a"), "a", keptNewer("", "")},
}

// duplicateTexts are the reports of keys that a list has twice. There must be no others.
func duplicateTexts(t *testing.T, m *streamedMirror) (texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, err := range m.errs {
		if cache.CauseOf(err) == cache.CauseExpired {
			continue
		}
		assert.Equal(t, causeDuplicateKey, cache.CauseOf(err), err)
		texts = append(texts, err.Error())
	}
	return texts
}

// G2, G6, G12: of a key that a list has twice, the newest decimal version is kept, without decimal versions
// the last one. The other one is reported once, also if later lists repeat it, and nothing is quarantined.
// An unchanged relist delivers nothing. Fails if the last state always counts, or if it is quarantined.
func TestG6OfAKeyThatAListHasTwiceTheNewestStateIsKept(t *testing.T) {
	for name, row := range duplicateKeys {
		for distance, between := range map[string]int{"together": 0, "in several parts": 250} {
			for _, way := range listMethods {
				if way == streamingList {
					continue // events of a key have an order there: TestB15InAStreamNoKeyRegresses
				}
				for kind, start := range streamedMirrors {
					t.Run(fmt.Sprintf("%s, %s, %s, %s", name, distance, way, kind), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							objects := slices.Concat([]apiruntime.Object{row.first}, validPods(between), []apiruntime.Object{row.second})
							source := newStateSource(objects)
							m := &streamedMirror{t: t, strategy: strategyFor(way)}
							start(m, source.asListerWatcher(way), &object{})
							assertKept := func() {
								obj, exists, err := m.store.GetByKey("a/x")
								assert.NoError(t, err)
								assert.True(t, exists)
								assert.Equal(t, "a/x@"+row.kept, identified(obj))
								assert.Equal(t, row.reports, duplicateTexts(t, m))
								assert.Empty(t, m.quarantined())
								assert.EqualValues(t, len(row.reports), m.status.Status().Failures[causeDuplicateKey])
							}
							assertKept()
							calls := m.handlerCalls()

							source.expire()
							time.Sleep(time.Minute)
							assertKept()
							assert.Equal(t, calls, m.handlerCalls(), "an unchanged relist delivers nothing")
						})
					})
				}
			}
		}
	}
}

// G2, G14: a transform drops the newest state of a key that a list has twice, far from an older one. The
// key is absent, in a first list and in a relist. Fails if only states that are stored count.
func TestG6OfAKeyThatAListHasTwiceADroppedNewestStateCounts(t *testing.T) {
	const dropped = "a/x@7"
	for name, before := range map[string][]apiruntime.Object{
		"a first list":              nil,
		"a relist":                  {validPod("y", "1")},
		"a relist of a stored key":  {validPod("x", "3")},
		"a relist of a dropped key": {validPod("x", "7")},
	} {
		for distance, between := range map[string]int{"together": 0, "in several parts": 250} {
			for _, way := range []string{wholeList, pagedList, itemByItem} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, distance, way), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						twice := slices.Concat(
							[]apiruntime.Object{validPod("x", "7")},
							validPods(between),
							[]apiruntime.Object{validPod("x", "5")})
						states := [][]apiruntime.Object{twice}
						if before != nil {
							states = [][]apiruntime.Object{before, twice}
						}
						source := newStateSource(states...)
						m := &streamedMirror{t: t, strategy: strategyFor(way)}
						options := cache.SharedIndexInformerOptions{
							ReflectorOptions: m.options(),
							Transform: func(obj any) (any, error) {
								if identified(obj) == dropped {
									return nil, nil
								}
								return obj, nil
							},
						}
						inf := cache.NewSharedIndexInformerWithOptions(
							source.asListerWatcher(way), &object{}, options)
						m.store = inf.GetStore()
						m.status = inf.(reporter)
						m.run(inf.RunWithContext)
						if before != nil {
							source.expire()
							time.Sleep(time.Minute)
						}
						assert.NotContains(t, m.store.ListKeys(), "a/x")
						assert.Len(t, m.store.ListKeys(), between)
						assert.Equal(t, keptNewer(" at version 7", " at version 5"), duplicateTexts(t, m))
					})
				})
			}
		}
	}
}
