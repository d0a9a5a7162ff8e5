package cachetest_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// FuzzSourceAgainstMaps writes to a source, and keeps a map of each of its states. Every list, of
// any version, in pages of any size with writes in between, must equal the maps. A watch from any
// version must lead from that state to the current one. Compacted and future versions must be
// refused.
//
// Each byte of a script has two halves. The lower four bits are the step, the upper four its
// argument n:
//
//	0-4   put a new state of key n (2 namespaces, 4 names); the step is its label: "0" to "4"
//	5, 6  delete key n; 6 is a deletion without an event
//	7     advance the version by n
//	8     compact, up to n versions ago
//	9     compact for watches only
//	10    roll back by n versions
//	11    list the state n versions ago; the next byte is the page size (lower three bits), then a bit each for namespace,
//	      selector and match
//	12    watch from n versions ago
//	13    begin a list with pages of two; 14 continues it
func FuzzSourceAgainstMaps(f *testing.F) {
	f.Add([]byte{
		0x00, 0x11, 0x22, 0x33, 0x1b, 0x02, 0x15, 0x3c, 0x0b, 0x08, 0x0d, 0x0e, 0x28, 0x0e,
		0x2c,
	})
	f.Add([]byte{
		0x00, 0x41, 0x52, 0x63, 0x0d, 0x46, 0x57, 0x0e, 0x2a, 0x0e, 0x3b, 0x81, 0x1c, 0x39,
		0x5c, 0x0b, 0x33, 0x70, 0x6b, 0x8a,
	})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 200 {
			return
		}
		m := &sourceModel{
			T:      t,
			source: cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind}),
			script: script,
		}
		m.states = map[uint64]map[string]string{0: {}}
		for len(m.script) > 0 {
			m.step()
			require.Equal(m, m.states[m.version], contentOf(t, m.source.Objects()))
			require.Equal(m, m.version, m.source.Version())
		}
		require.Zero(t, m.source.ActiveWatches())
		m.source.Close()
	})
}

// sourceModel is a source and its expected states.
type sourceModel struct {
	*testing.T
	source *cachetest.Source
	script []byte
	// states has the content at each version: key to version and label.
	states  map[uint64]map[string]string
	version uint64
	// compacted and unwatchable are the oldest versions that can be listed and watched from. hidden
	// has the versions whose change no watch delivers.
	compacted, unwatchable uint64
	hidden                 []uint64
	// token continues a list at version listed, which has returned the keys so far.
	token  string
	listed uint64
	had    map[string]string
}

func (m *sourceModel) next() byte {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return b
}

func (m *sourceModel) step() {
	b := m.next()
	op := b & 15
	choice := b >> 4
	ago := m.version - min(m.version, uint64(choice))
	switch {
	case op < 5:
		m.put(choice, strconv.Itoa(int(op)))
	case op < 7:
		m.remove(choice, op == 6)
	case op == 7:
		m.source.Advance(uint64(choice))
		m.moved(m.states[m.version], uint64(choice))
	case op == 8:
		m.source.Compact(ago)
		m.compacted = max(m.compacted, ago)
	case op == 9:
		m.source.CompactWatches(ago)
		m.unwatchable = max(m.unwatchable, ago)
	case op == 10:
		m.rollback(ago)
	case op == 11:
		m.list(ago, m.next())
	case op == 12:
		m.watch(ago)
	case op == 13:
		m.token = ""
		m.had = map[string]string{}
		m.page()
	case op == 14 && m.token != "":
		m.page()
	}
}

// moved records the source's content after the version advanced by so many.
func (m *sourceModel) moved(content map[string]string, by uint64) {
	for range by {
		m.version++
		m.states[m.version] = maps.Clone(content)
	}
}

func keyOf(choice byte) (namespace, name string) {
	return []string{"a", "ab"}[choice&1], strconv.Itoa(int(choice >> 1 & 3))
}

func (m *sourceModel) put(choice byte, label string) {
	namespace, name := keyOf(choice)
	_, exists := m.states[m.version][namespace+"/"+name]
	_, err := m.source.Create(pod(namespace, name, "l", label))
	require.Equal(m, exists, apierrors.IsAlreadyExists(err))
	if exists {
		_, err = m.source.Update(pod(namespace, name, "l", label))
	}
	require.NoError(m, err)
	m.moved(m.states[m.version], 1)
	m.states[m.version][namespace+"/"+name] = strconv.FormatUint(m.version, 10) + " " + label
}

func (m *sourceModel) remove(choice byte, silently bool) {
	namespace, name := keyOf(choice)
	key := namespace + "/" + name
	_, exists := m.states[m.version][key]
	var err error
	if silently {
		_, err = m.source.DeleteSilently(namespace, name)
	} else {
		_, err = m.source.Delete(namespace, name)
	}
	require.Equal(m, exists, err == nil)
	if !exists {
		return
	}
	m.moved(m.states[m.version], 1)
	delete(m.states[m.version], key)
	if silently {
		m.hidden = append(m.hidden, m.version)
	}
}

func (m *sourceModel) rollback(to uint64) {
	err := m.source.Rollback(to)
	require.Equal(m, to >= m.compacted, err == nil, "%v", err)
	if err != nil {
		return
	}
	m.version = to
	m.unwatchable = min(m.unwatchable, to)
	m.hidden = slices.DeleteFunc(m.hidden, func(v uint64) bool { return v > to })
	if m.token != "" {
		_, err := m.source.List(metav1.ListOptions{Limit: 2, Continue: m.token})
		require.True(m, apierrors.IsResourceExpired(err), "%v", err)
		m.asked()
		m.token = ""
	}
}

// asked records that a source at version 0 moves to 1 when it is requested.
func (m *sourceModel) asked() {
	if m.version == 0 {
		m.moved(m.states[0], 1)
	}
}

// list requests a version in pages, and compares all of them.
func (m *sourceModel) list(version uint64, how byte) {
	m.asked()
	options := metav1.ListOptions{
		Limit:           int64(how & 7),
		ResourceVersion: strconv.FormatUint(version, 10),
	}
	namespace := ""
	selector := labels.Everything()
	if how&8 != 0 {
		namespace = "a"
	}
	if how&16 != 0 {
		options.LabelSelector = "l in (1,2)"
		selector, _ = labels.Parse(options.LabelSelector)
	}
	exactly := version > 0 && options.Limit > 0
	if how&32 != 0 && version > 0 {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		exactly = true
	} else if how&64 != 0 {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
		exactly = false
	}
	at := m.version
	if exactly {
		at = version
	}
	want := map[string]string{}
	for key, state := range m.states[at] {
		label := state[len(state)-1:]
		if (namespace == "" || key[:2] == "a/") && selector.Matches(labels.Set{"l": label}) {
			want[key] = state
		}
	}
	have := map[string]string{}
	for pages := 1; ; pages++ {
		list, err := m.source.Namespace(namespace).List(options)
		if exactly && version < m.compacted {
			require.True(m, apierrors.IsResourceExpired(err), "%v", err)
			return
		}
		require.NoError(m, err)
		accessor, err := meta.ListAccessor(list)
		require.NoError(m, err)
		require.Equal(m, strconv.FormatUint(at, 10), accessor.GetResourceVersion())
		page := contentOf(m.T, items(m.T, list))
		require.True(m, options.Limit == 0 || len(page) <= int(options.Limit))
		for key := range page {
			require.NotContains(m, have, key, "on two pages")
		}
		maps.Copy(have, page)
		if accessor.GetContinue() == "" {
			break
		}
		require.LessOrEqual(m, pages, len(want), "a page without end")
		options.ResourceVersion = ""
		options.ResourceVersionMatch = ""
		options.Continue = accessor.GetContinue()
	}
	require.Equal(m, want, have)
}

// page requests the next page of the list, which has the version of its first page.
func (m *sourceModel) page() {
	m.asked()
	if m.token == "" {
		m.listed = m.version
	}
	list, err := m.source.List(metav1.ListOptions{Limit: 2, Continue: m.token})
	if m.token != "" && m.listed < m.compacted {
		require.True(m, apierrors.IsResourceExpired(err), "%v", err)
		m.token = ""
		return
	}
	require.NoError(m, err)
	accessor, err := meta.ListAccessor(list)
	require.NoError(m, err)
	maps.Copy(m.had, contentOf(m.T, items(m.T, list)))
	if m.token = accessor.GetContinue(); m.token == "" {
		require.Equal(m, m.states[m.listed], m.had)
	} else {
		require.Equal(m, int(*accessor.GetRemainingItemCount()), len(m.states[m.listed])-len(m.had))
	}
}

// watch receives all events after a version, and applies them to that version's state.
func (m *sourceModel) watch(from uint64) {
	if from == 0 {
		return
	}
	w, err := m.source.Watch(metav1.ListOptions{ResourceVersion: strconv.FormatUint(from, 10)})
	if from < max(m.compacted, m.unwatchable) {
		require.True(m, apierrors.IsResourceExpired(err), "%v", err)
		return
	}
	require.NoError(m, err)
	view := maps.Clone(m.states[from])
	for version := from + 1; version <= m.version; version++ {
		before := m.states[version-1]
		after := m.states[version]
		if maps.Equal(before, after) {
			continue // it moved by itself
		}
		if slices.Contains(m.hidden, version) {
			maps.DeleteFunc(
				view, func(key, _ string) bool { _, there := after[key]; return !there })
			continue
		}
		event, open := <-w.ResultChan()
		require.True(m, open)
		m.apply(view, event)
		require.Equal(m, after, view, "after %s at version %d", event.Type, version)
	}
	w.Stop()
	_, open := <-w.ResultChan()
	require.False(m, open, "an event too many")
}

// items returns the objects of a list.
func items(t *testing.T, list runtime.Object) []runtime.Object {
	t.Helper()
	objects, err := meta.ExtractList(list)
	require.NoError(t, err)
	return objects
}

// contentOf returns objects by key, each as its version and label. It requires that they are
// sorted.
func contentOf(t *testing.T, objects []runtime.Object) map[string]string {
	t.Helper()
	content := map[string]string{}
	last := ""
	for _, obj := range objects {
		accessor, err := meta.Accessor(obj)
		require.NoError(t, err)
		key := accessor.GetNamespace() + "/" + accessor.GetName()
		require.Less(t, last, key)
		last = key
		content[key] = accessor.GetResourceVersion() + " " + accessor.GetLabels()["l"]
	}
	return content
}

func (m *sourceModel) apply(view map[string]string, event watch.Event) {
	accessor, err := meta.Accessor(event.Object)
	require.NoError(m, err)
	key := accessor.GetNamespace() + "/" + accessor.GetName()
	_, exists := view[key]
	require.Equal(m, event.Type != watch.Added, exists)
	delete(view, key)
	if event.Type != watch.Deleted {
		view[key] = accessor.GetResourceVersion() + " " + accessor.GetLabels()["l"]
	}
}
