package cache

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// resyncedRigs are pipelines that resync every minute, with a consumer that may refuse.
var resyncedRigs = map[string]func(*testing.T, *cachetest.Source, func(obj any) error) *rig{
	"a Process": func(t *testing.T, source *cachetest.Source, refuse func(any) error) *rig {
		return processRig(t, source, func(c *Config, _ *DeltaFIFO, _ Indexer) {
			apply := c.Process
			c.Process = func(obj any, initial bool) error {
				if err := refuse(obj.(Deltas).Newest().Object); err != nil {
					return err
				}
				return apply(obj, initial)
			}
			c.FullResyncPeriod = time.Minute
		})
	},
	"a store that is not ours": func(t *testing.T, source *cachetest.Source, refuse func(any) error) *rig {
		return newRig(t, source, func(c *Config) {
			c.KeyFunction, c.FullResyncPeriod = MetaNamespaceKeyFunc, time.Minute
			c.Store = &storeOfAnother{Store: c.Store, refuse: refuse}
		})
	},
}

// refusals are the versions that a consumer refuses now.
type refusals struct {
	mu       sync.Mutex
	versions []string
}

func (r *refusals) are(versions ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = versions
}

func (r *refusals) refuse(obj any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.versions, receivedOf(obj).ResourceVersion) {
		return errBoom
	}
	return nil
}

// heldVersions is what a status says is held back: key to version.
func heldVersions(s Status) map[string]string {
	held := map[string]string{}
	for _, q := range s.Quarantined {
		held[q.Key] = q.ResourceVersion
	}
	return held
}

// G6: what a consumer refuses when it is only told again of what it has is held back until
// it has taken that, at a later resync. Fails if a resync releases nothing.
func TestG6WhatWasRefusedAtAResyncIsReleasedByTheNext(t *testing.T) {
	for name, build := range resyncedRigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, refused := newSource(t, pod("a", "1"), pod("a", "2")), &refusals{}
				r := build(t, source, refused.refuse)
				r.run()
				sleep(30 * time.Second)
				require.Empty(t, heldVersions(r.status()))
				refused.are("1")
				sleep(time.Minute)
				refused.are()
				require.Equal(t, map[string]string{"a/1": "1"}, heldVersions(r.status()))
				require.Len(t, r.heard.all(), 1)
				sleep(time.Minute)
				assert.Empty(t, heldVersions(r.status()))
				assert.Len(t, r.heard.all(), 1)
				r.equalsSource()
				r.stop()
			})
		})
	}
}

// G6: a resync that repeats an older state than the one that is held back changes nothing,
// whether that is refused, as it was before, or taken. Fails if a state that is repeated
// takes the place of the one that is held, or releases whatever is.
func TestG6AResyncReleasesNoStateThatItDoesNotRepeat(t *testing.T) {
	for name, build := range resyncedRigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, refused := newSource(t, pod("a", "1"), pod("a", "2")), &refusals{}
				r := build(t, source, refused.refuse)
				r.run()
				sleep(30 * time.Second)
				refused.are("1", "3")
				sleep(time.Minute)
				require.Equal(t, map[string]string{"a/1": "1"}, heldVersions(r.status()))
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "x")))
				for range 2 {
					sleep(5 * time.Minute)
					assert.Equal(t, map[string]string{"a/1": "3"}, heldVersions(r.status()))
					assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, r.versions())
					refused.are("3")
				}
				refused.are()
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "y")))
				synctest.Wait()
				assert.Empty(t, heldVersions(r.status()))
				r.equalsSource()
				r.stop()
			})
		})
	}
}
