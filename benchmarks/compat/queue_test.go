package compat

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	theirs "k8s.io/client-go/tools/cache"

	ours "github.com/watchmirror/cache"
)

// held is what a queue's consumer holds: the KnownObjects of these tests.
type held map[string]*object

func (h held) ListKeys() []string { return slices.Sorted(maps.Keys(h)) }

func (h held) GetByKey(key string) (any, bool, error) {
	obj, ok := h[key]
	return obj, ok, nil
}

func holding(objects ...*object) held {
	h := held{}
	for _, o := range objects {
		h["ns/"+o.Name] = o
	}
	return h
}

// tape is a queue and what was seen of it.
type tape struct {
	queue
	seen []string
}

func (p *tape) note(text string) { p.seen = append(p.seen, text) }

// must notes an error, which none of the scripts expects of what it must do.
func (p *tape) must(err error) {
	if err != nil {
		p.note("error: " + err.Error())
	}
}

// take pops once.
func (p *tape) take() {
	out, err := p.pop(func() error { return nil })
	if err != nil {
		p.note("pop failed")
		return
	}
	if out.initial {
		out.deltas += " (initial)"
	}
	p.note(out.deltas)
}

func (p *tape) synced() {
	if p.HasSynced() {
		p.note("synced")
		return
	}
	p.note("not synced")
}

// TestTheQueueKeepsClientGosContract runs each script against both queues. A
// difference in what comes out, in what order, merged how, or in when the queue
// is synced, makes it fail.
func TestTheQueueKeepsClientGosContract(t *testing.T) {
	cases := []struct {
		name    string
		known   known
		options queueOptions
		script  func(*tape)
		want    []string
	}{
		{
			name: "changes of a key come out together, keys in the order in which they came in",
			script: func(p *tape) {
				p.must(p.Add(at("x", "1")))
				p.must(p.Add(at("y", "2")))
				p.must(p.Update(at("x", "3")))
				p.must(p.Delete(at("x", "4")))
				p.take()
				p.take()
			},
			want: []string{"Added ns/x@1, Updated ns/x@3, Deleted ns/x@4", "Added ns/y@2"},
		},
		{
			name:  "two deletions are one, and the one that knows more stays",
			known: holding(at("x", "1"), at("y", "1"), at("z", "1")),
			script: func(p *tape) {
				p.must(p.Delete(at("x", "2")))
				p.must(p.Delete(p.tombstone("ns/x", at("x", "1"))))
				p.must(p.Delete(p.tombstone("ns/y", at("y", "1"))))
				p.must(p.Delete(at("y", "2")))
				p.must(p.Delete(p.tombstone("ns/z", at("z", "1"))))
				p.must(p.Delete(p.tombstone("ns/z", nil)))
				p.take()
				p.take()
				p.take()
			},
			want: []string{"Deleted ns/x@2", "Deleted ns/y@2", "Deleted tombstone(ns/z, nothing)"},
		},
		{
			name: "a deletion of what nobody knows is nothing",
			script: func(p *tape) {
				p.must(p.Delete(at("x", "1")))
				p.Close()
				p.take()
			},
			want: []string{"pop failed"},
		},
		{
			name:  "nor with known objects",
			known: holding(at("y", "1")),
			script: func(p *tape) {
				p.must(p.Delete(at("x", "1")))
				p.must(p.Delete(at("y", "2")))
				p.take()
			},
			want: []string{"Deleted ns/y@2"},
		},
		{
			name:    "a first list is Replaced, and synced when it has been popped",
			options: queueOptions{replaced: true},
			script: func(p *tape) {
				p.synced()
				p.must(p.Replace(list(at("x", "1"), at("y", "2")), "2"))
				p.synced()
				p.take()
				p.synced()
				p.take()
				p.synced()
				p.must(p.Update(at("x", "3")))
				p.take()
			},
			want: []string{
				"not synced", "not synced", "Replaced ns/x@1 (initial)", "not synced",
				"Replaced ns/y@2 (initial)", "synced", "Updated ns/x@3",
			},
		},
		{
			name: "or Sync, if nobody asked for Replaced",
			script: func(p *tape) {
				p.must(p.Replace(list(at("x", "1")), "1"))
				p.take()
			},
			want: []string{"Sync ns/x@1 (initial)"},
		},
		{
			name: "an empty first list is synced at once",
			script: func(p *tape) {
				p.must(p.Replace(nil, "1"))
				p.synced()
			},
			want: []string{"synced"},
		},
		{
			name: "what comes before any list is no first list",
			script: func(p *tape) {
				p.must(p.Add(at("x", "1")))
				p.synced()
				p.take()
			},
			want: []string{"synced", "Added ns/x@1"},
		},
		{
			name:    "a list deletes what is known and not listed",
			known:   holding(at("x", "1"), at("y", "1")),
			options: queueOptions{replaced: true},
			script: func(p *tape) {
				p.must(p.Replace(list(at("y", "2")), "2"))
				p.take()
				p.synced()
				p.take()
				p.synced()
			},
			want: []string{
				"Replaced ns/y@2 (initial)", "not synced", "Deleted tombstone(ns/x, ns/x@1) (initial)", "synced",
			},
		},
		{
			name:    "a list deletes what is only queued",
			known:   holding(),
			options: queueOptions{replaced: true},
			script: func(p *tape) {
				p.must(p.Add(at("x", "1")))
				p.must(p.Update(at("x", "2")))
				p.must(p.Replace(list(at("y", "3")), "3"))
				p.take()
				p.take()
			},
			want: []string{"Added ns/x@1, Updated ns/x@2, Deleted tombstone(ns/x, ns/x@2)", "Replaced ns/y@3"},
		},
		{
			name:    "a list brings back what is queued as deleted",
			known:   holding(at("x", "1")),
			options: queueOptions{replaced: true},
			script: func(p *tape) {
				p.must(p.Delete(at("x", "2")))
				p.must(p.Replace(list(at("x", "3")), "3"))
				p.take()
			},
			want: []string{"Deleted ns/x@2, Replaced ns/x@3"},
		},
		{
			name:    "without a record of what was received, a relist tells unchanged objects too",
			known:   holding(at("x", "1")),
			options: queueOptions{replaced: true},
			script: func(p *tape) {
				p.must(p.Replace(list(at("x", "1")), "1"))
				p.take()
			},
			want: []string{"Replaced ns/x@1 (initial)"},
		},
		{
			name:  "a resync sends what is known and has nothing queued",
			known: holding(at("x", "1"), at("y", "1")),
			script: func(p *tape) {
				p.must(p.Update(at("y", "2")))
				p.must(p.Resync())
				p.take()
				p.take()
			},
			want: []string{"Updated ns/y@2", "Sync ns/x@1"},
		},
		{
			name: "a resync without known objects is nothing",
			script: func(p *tape) {
				p.must(p.Add(at("x", "1")))
				p.must(p.Resync())
				p.take()
				p.Close()
				p.take()
			},
			want: []string{"Added ns/x@1", "pop failed"},
		},
		{
			name:    "objects are transformed as they come in, tombstones and resyncs are not",
			known:   holding(at("x", "1"), at("y", "1")),
			options: queueOptions{replaced: true, transform: relabel},
			script: func(p *tape) {
				p.must(p.Add(at("a", "1")))
				p.must(p.Update(at("b", "2")))
				p.must(p.Delete(at("x", "3")))
				p.must(p.Delete(p.tombstone("ns/y", at("y", "1"))))
				for range 4 {
					p.take()
				}
				p.must(p.Resync())
				p.take()
				p.take()
			},
			want: []string{
				"Added ns/a@1 seen", "Updated ns/b@2 seen", "Deleted ns/x@3 seen",
				"Deleted tombstone(ns/y, ns/y@1)", "Sync ns/x@1", "Sync ns/y@1",
			},
		},
		{
			name: "a closed queue hands out what is left",
			script: func(p *tape) {
				p.must(p.Add(at("x", "1")))
				p.Close()
				if p.IsClosed() {
					p.note("closed")
				}
				p.take()
				p.take()
			},
			want: []string{"closed", "Added ns/x@1", "pop failed"},
		},
		{
			name: "what failed to be processed is not handed out again",
			script: func(p *tape) {
				p.must(p.Add(at("x", "1")))
				_, err := p.pop(func() error { return errors.New("boom") })
				p.note(err.Error())
				p.Close()
				p.take()
			},
			want: []string{"boom", "pop failed"},
		},
		{
			name: "the key of deltas and tombstones",
			script: func(p *tape) {
				key, err := p.KeyOf(p.tombstone("ns/deleted", nil))
				p.must(err)
				p.note(key)
				key, err = p.KeyOf(at("x", "1"))
				p.must(err)
				p.note(key)
				if _, err = p.keyOfNoDeltas(); err != nil {
					p.note("no deltas, no key")
				}
			},
			want: []string{"ns/deleted", "ns/x", "no deltas, no key"},
		},
	}
	for _, tc := range cases {
		for _, s := range sides {
			t.Run(tc.name+"/"+s.name, func(t *testing.T) {
				p := &tape{queue: s.newQueue(tc.known, tc.options)}
				tc.script(p)
				require.Equal(t, tc.want, p.seen)
			})
		}
	}
}

// relabel is a transform whose work show can see. It changes a copy: the objects
// of a test are not shared with a source.
func relabel(obj any) (any, error) {
	out := obj.(*object).DeepCopy()
	out.Labels = map[string]string{"v": "seen"}
	return out, nil
}

func TestPopWaitsUntilSomethingComesOrTheQueueCloses(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &tape{queue: s.newQueue(nil, queueOptions{})}
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.take()
					p.take()
				}()
				synctest.Wait()
				require.NoError(t, p.Add(at("x", "1")))
				synctest.Wait()
				p.Close()
				<-done
				require.Equal(t, []string{"Added ns/x@1", "pop failed"}, p.seen)
			})
		})
	}
}

func TestErrorsOfAQueueAreTheSameSentinelsAndTypes(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		q := ours.NewDeltaFIFOWithOptions(ours.DeltaFIFOOptions{})
		q.Close()
		_, err := q.Pop(func(any, bool) error { return nil })
		require.ErrorIs(t, err, ours.ErrFIFOClosed)
		_, err = q.KeyOf(ours.Deltas{})
		require.ErrorIs(t, err, ours.ErrZeroLengthDeltasObject)
		require.ErrorAs(t, q.Add("no metadata"), &ours.KeyError{})
	})
	t.Run("client-go", func(t *testing.T) {
		q := theirs.NewDeltaFIFOWithOptions(theirs.DeltaFIFOOptions{})
		q.Close()
		_, err := q.Pop(func(any, bool) error { return nil })
		require.ErrorIs(t, err, theirs.ErrFIFOClosed)
		_, err = q.KeyOf(theirs.Deltas{})
		require.ErrorIs(t, err, theirs.ErrZeroLengthDeltasObject)
		require.ErrorAs(t, q.Add("no metadata"), &theirs.KeyError{})
	})
}
