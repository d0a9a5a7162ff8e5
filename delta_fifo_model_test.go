package cache

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// requireIndexed compares what the log finds by key with its records, one by one.
func requireIndexed(t *testing.T, l *deltaLog) {
	t.Helper()
	newest, records := map[table.Key]int64{}, 0
	for at := l.head; at < l.end(); at++ {
		r := l.get(at)
		if r.stage == pending {
			records++
		}
		if r.stage != processed && !r.isVersion() {
			newest[r.key] = at
		}
	}
	require.Equal(t, newest, l.newest)
	require.Equal(t, records, l.pending)
	for _, r := range l.records[len(l.records):cap(l.records)] {
		require.Zero(t, r)
	}
}

// versionOf is the version of one of the model's objects as a number.
func versionOf(obj any) int {
	received := receivedOf(obj)
	version, _ := strconv.Atoi(received.ResourceVersion)
	return version
}

// transformByLabel is a transform whose answer an object names itself. What it
// returns is marked, so that one that is transformed again shows.
func transformByLabel(obj any) (any, error) {
	switch o := obj.(*object).DeepCopy(); o.Labels["v"] {
	case "bad":
		return nil, errBoom
	case "unwanted":
		return nil, nil
	default:
		o.Labels["transformed"] += "once"
		return o, nil
	}
}

// list makes a list, of keys that the source has as they are or changed, and of
// new ones: two bits of the bytes for each key.
func (m *queueModel) list() (items []any) {
	choices := int(m.next()) | int(m.next())<<8
	for i := range 6 {
		choice := choices >> (2 * i) & 3
		have, there := m.source["a/"+itoa(i)]
		// A list that brings a key again brings a later state.
		_, again := m.listed["a/"+itoa(i)]
		switch {
		case choice == 0 || choice == 1 && (!there || again):
		case choice == 1:
			same := podAt("a", itoa(i), itoa(have))
			same.Labels = map[string]string{}
			items = append(items, same)
		default:
			obj, _ := m.put(i, m.next())
			items = append(items, obj)
		}
	}
	return items
}

func (m *queueModel) replaceWhole() {
	items := m.list()
	listed := map[string]bool{}
	failures := 0
	for _, item := range items {
		obj := item.(*object)
		listed[nameOf(obj)] = became(m.source, nameOf(obj), obj)
		if obj.Labels["v"] == "bad" {
			failures++
		}
	}
	m.serial++
	m.keepOnly(listed)
	m.tell(m.serial)
	if m.first == 0 {
		m.first = m.serial
	}
	err := m.queue.Replace(items, itoa(m.serial))
	objects, other := splitObjectErrors(err)
	require.NoError(m.t, other)
	require.Len(m.t, objects, failures)
}

func (m *queueModel) keepOnly(listed map[string]bool) {
	maps.DeleteFunc(m.source, func(key string, _ int) bool { return !listed[key] })
	for i := range 6 {
		m.noteGone("a/" + itoa(i))
	}
}

func (m *queueModel) replaceInParts() {
	if m.replacement == nil {
		m.replacement = m.queue.BeginReplace(ReplaceOptions{})
		m.visible = m.first == 0 && !m.other
		m.listed, m.staged = map[string]bool{}, map[string]int{}
		return
	}
	switch b := m.next(); b % 8 {
	case 0:
		m.abort()
	case 1, 2:
		m.commit()
	default:
		m.part(b)
	}
}

func (m *queueModel) abort() {
	m.replacement.Abort()
	m.replacement, m.listed = nil, nil
}

func (m *queueModel) part(b byte) {
	var part ReplacementPart
	// What is visible is the source's state; otherwise it is so at the commit.
	state := m.staged
	if m.visible {
		state = m.source
		m.open = true
	}
	failures := 0
	part.Items = m.list()
	for _, item := range part.Items {
		obj := item.(*object)
		key := nameOf(obj)
		m.listed[key] = became(state, key, obj)
		if obj.Labels["v"] == "bad" {
			failures++
		}
		if m.visible {
			m.noteGone(key)
		}
	}
	if b&16 != 0 {
		part.Keep = append(part.Keep, podAt("a", itoa(int(b>>5)%6), ""))
		m.listed["a/"+itoa(int(b>>5)%6)] = true
	}
	if b&8 != 0 {
		m.serial++
		key := "a/" + itoa(int(b>>5))
		part.Gone = append(part.Gone, podAt("a", itoa(int(b>>5)), itoa(m.serial)))
		part.Gone[0].(*object).Labels = map[string]string{}
		delete(state, key)
		m.listed[key] = false
		m.noteGone(key)
	}
	rejected, err := m.replacement.Part(bg, part)
	require.NoError(m.t, err)
	require.Len(m.t, rejected, failures)
}

func (m *queueModel) commit() {
	m.serial++
	maps.Copy(m.source, m.staged)
	m.keepOnly(m.listed)
	m.tell(m.serial)
	if m.first == 0 {
		m.first = m.serial
	}
	require.NoError(m.t, m.replacement.Commit(bg, itoa(m.serial)))
	m.replacement, m.listed = nil, nil
}

// consume takes something out, if there is anything; more comes in while it is
// processed, before or after the consumer has it.
func (m *queueModel) consume(op int) {
	b := m.next()
	m.queue.mu.Lock()
	changes, pending := len(m.queue.log.pendingKeys()), m.queue.log.pending
	m.queue.mu.Unlock()
	if pending == 0 || op%3 == 0 && changes == 0 {
		return
	}
	dropped := b&16 != 0
	err := m.takeOut(op, func(apply func()) error {
		m.depth++
		defer func() { m.depth-- }()
		for range b % 4 {
			m.step()
			m.check()
		}
		if dropped {
			return errDropped
		}
		apply()
		for range b >> 6 {
			m.step()
			m.check()
		}
		if b&8 != 0 {
			return errBoom
		}
		return nil
	})
	require.Equal(m.t, dropped, errors.Is(err, errDropped))
	require.Equal(m.t, !dropped && b&8 != 0, errors.Is(err, errBoom))
}

// takeOut takes something out in one of the three ways. around, if not nil, is
// given what applies it.
func (m *queueModel) takeOut(way int, around func(apply func()) error) error {
	if around == nil {
		around = func(apply func()) error {
			apply()
			return nil
		}
	}
	switch way % 3 {
	case 0:
		_, err := m.queue.Pop(func(obj any, _ bool) error {
			return around(func() { m.consumer.take(obj.(Deltas)) })
		})
		return err
	case 1:
		return m.queue.PopBatch(func(deltas []Delta, _ bool) error {
			return around(func() { m.consumer.takeBatch(deltas) })
		}, nil)
	default:
		return popPending(m.queue, func(b batch) error {
			return around(func() {
				for _, c := range b.changes {
					m.consumer.take([]Delta{c.Delta})
				}
				if b.version != "" {
					m.consumer.UpdateResourceVersion(b.version)
				}
			})
		})
	}
}

// modelConsumer makes a map of the deltas and finds fault with them.
type modelConsumer struct {
	model   *queueModel
	held    map[string]*object
	records bool
}

// recordingConsumer also has what was received.
type recordingConsumer struct{ *modelConsumer }

func (c recordingConsumer) Received(key string) (Received, bool) {
	obj, ok := c.held[key]
	return receivedOf(obj), ok
}

func (c *modelConsumer) ListKeys() []string { return slices.Sorted(maps.Keys(c.held)) }

func (c *modelConsumer) GetByKey(key string) (any, bool, error) {
	obj, ok := c.held[key]
	return obj, ok, nil
}

// UpdateResourceVersion is told that the version holds.
func (c *modelConsumer) UpdateResourceVersion(version string) { c.holds(version) }

// holds finds fault with a version that is ahead of what the consumer has.
func (c *modelConsumer) holds(version string) {
	t := c.model.t
	at, err := strconv.Atoi(version)
	require.NoError(t, err)
	then, told := c.model.told[at]
	require.True(t, told, "version %s was never told", version)
	for key, v := range then {
		if obj, there := c.held[key]; there {
			require.GreaterOrEqual(t, versionOf(obj), v, "%s, at version %s", key, version)
		} else {
			require.Greater(t, c.model.gone[key], at, "%s is not there, at version %s", key, version)
		}
	}
	for key, obj := range c.held {
		if _, there := then[key]; !there {
			require.Greater(t, versionOf(obj), at, "%s is still there, at version %s", key, version)
		}
	}
}

func (c *modelConsumer) takeBatch(deltas []Delta) {
	t := c.model.t
	seen := map[string]bool{}
	for i, d := range deltas {
		if d.Type == Bookmark {
			require.Equal(t, len(deltas)-1, i, "a bookmark in the middle")
			c.holds(d.Object.(BookmarkInfo).ResourceVersion)
			continue
		}
		key, _ := c.model.queue.KeyOf(d.Object)
		require.False(t, seen[key], "%s twice in a batch", key)
		seen[key] = true
		c.take([]Delta{d})
	}
}

// take applies deltas in their order.
func (c *modelConsumer) take(deltas []Delta) {
	t := c.model.t
	require.NotEmpty(t, deltas)
	for _, d := range deltas {
		key, err := c.model.queue.KeyOf(d.Object)
		require.NoError(t, err)
		before, there := c.held[key]
		if d.Type == Deleted {
			require.True(t, there, "%s deleted, and not there", key)
			require.GreaterOrEqual(t, versionOf(finalStateOf(d.Object)), versionOf(before), key)
			delete(c.held, key)
			continue
		}
		obj := d.Object.(*object)
		require.Equal(t, "once", obj.Labels["transformed"], "how often %s was transformed", key)
		switch {
		case d.Type == Sync:
			require.Same(t, before, obj, "a resync of %s", key)
		case c.records:
			require.Greater(t, versionOf(obj), versionOf(before), "%s goes back, or repeats", key)
		default:
			require.GreaterOrEqual(t, versionOf(obj), versionOf(before), "%s goes back", key)
		}
		c.held[key] = obj
	}
}
