package cache

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pagesOf is a source whose pages are made of their number, from 1 on: the token that
// comes with one, "" at the end, and how many objects it has.
func pagesOf(page func(n int) (token string, objects int)) *itemScript {
	last := 0
	return &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		token, objects := page(n)
		about := metav1.ListMeta{ResourceVersion: "9", Continue: token}
		last += objects
		return about, takeAll(take, about, last-objects+1, last)
	}}
}

// A chain of continue tokens that has no end is a failure of the source like any
// other, answered with a pause. Fails if only a token that follows itself is noticed,
// or nothing but repetition is.
func TestAListWhosePagesNeverEndFails(t *testing.T) {
	circle := func(before, length, objects int) func(int) (string, int) {
		return func(n int) (string, int) {
			if n <= before {
				return fmt.Sprint("before ", n), objects
			}
			return fmt.Sprint((n - before) % length), objects
		}
	}
	for name, row := range map[string]struct {
		page func(int) (string, int)
		most int
	}{
		"the same token":                     {circle(0, 1, 0), 2},
		"two tokens":                         {circle(0, 2, 0), 5},
		"a circle of pages with objects":     {circle(10, 7, 3), 10 + 3*7},
		"a long way into a long circle":      {circle(300, 90, 1), 3 * (300 + 90)},
		"new tokens, and nothing but tokens": {circle(math.MaxInt, 1, 0), emptyPages},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := pagesOf(row.page), &heard{}
				r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)})
				stop := runReflector(t, r)
				asked := source.lists
				assert.LessOrEqual(t, asked, row.most)
				assert.Equal(t, []Cause{CauseOther}, h.causes())
				assert.ErrorContains(t, h.all()[0], "continue token")
				assert.False(t, r.Status().Synced)
				sleep(50 * time.Second)
				assert.Equal(t, asked, source.lists, "and the next list waits")
				stop()
			})
		})
	}
}

// Pages without objects are no failure by themselves, nor is a long list one.
func TestALongListWithEmptyPagesIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := pagesOf(func(n int) (string, int) {
			switch {
			case n == 5*emptyPages:
				return "", 0
			case n%(emptyPages-1) == 0:
				return itoa(n), 1
			}
			return itoa(n), 0
		}), &heard{}
		store := NewStore(MetaNamespaceKeyFunc)
		stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{ErrorHandler: h.handle}))
		assert.Empty(t, h.all())
		assert.Equal(t, 5*emptyPages, source.lists)
		assert.Len(t, store.ListKeys(), 5)
		stop()
	})
}
