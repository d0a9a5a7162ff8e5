package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// G10: who asks for a quarantined key waits for no write. Fails if Get asks the quarantine itself,
// whose lock a write has for as long as it takes.
func TestGetOfAQuarantinedKeyTakesNoLockOfAWrite(t *testing.T) {
	store := NewIndexer(MetaNamespaceKeyFunc, Indexers{"i": func(any) ([]string, error) { return nil, errBoom }})
	require.Error(t, store.Add(pod("a", "1")))
	storage := store.(*cache).storage
	storage.writing.Lock()
	storage.heldMu.Lock()
	defer storage.writing.Unlock()
	defer storage.heldMu.Unlock()
	errs := make(chan error, 2)
	go func() {
		_, _, err := store.GetByKey("a/1")
		errs <- err
		_, _, err = store.Get(pod("a", "2"))
		errs <- err
	}()
	for _, want := range []error{errBoom, nil} {
		select {
		case err := <-errs:
			assert.ErrorIs(t, err, want)
		case <-time.After(10 * time.Second):
			t.Fatal("Get waits for a write")
		}
	}
}

// What readers know of a quarantine is what it holds, whatever was added, restored and released:
// and they know of nothing once it is empty.
func TestReadersKnowOfAQuarantineWhatItHolds(t *testing.T) {
	var index quarantineIndex
	q := quarantine{readers: quarantineReaders{index: &index, by: byQueue, prefix: "a/"}}
	other := quarantine{readers: quarantineReaders{index: &index, by: byStore}}
	check := func(keys ...string) {
		t.Helper()
		assert.ElementsMatch(t, keys, q.keys())
		assert.EqualValues(t, len(keys)+len(other.keys()), index.len.Load())
		for _, key := range []string{"a/1", "a/2", "a/3"} {
			assert.Equal(t, q.holds(key) || other.holds(key), index.find(key) != nil, key)
		}
	}
	q.add(&ObjectError{Key: "a/1", ResourceVersion: "1", Err: errBoom})
	q.add(&ObjectError{Key: "a/1", ResourceVersion: "2", Err: errBoom})
	other.add(&ObjectError{Key: "a/2", Err: errBoom})
	other.add(&ObjectError{Key: "a/1", Err: errBoom})
	check("a/1")
	var aside heldAside
	aside.add(&q, &ObjectError{Key: "a/1", ResourceVersion: "3", Err: errBoom})
	aside.add(&q, &ObjectError{Key: "a/3", ResourceVersion: "3", Err: errBoom})
	check("a/1", "a/3")
	aside.undo(&q)
	check("a/1")
	assert.ErrorContains(t, index.find("a/2"), "a/2")
	q.releaseIf(func(string) bool { return true })
	check()
	q.put("b/1", Quarantined{Key: "b/1"})
	again := quarantine{readers: q.readers}
	again.put("a/3", Quarantined{Key: "a/3"})
	other.releaseIf(func(key string) bool { return key == "a/2" })
	again.releaseIf(func(string) bool { return false })
	assert.NoError(t, index.find("a/2"))
	assert.Error(t, index.find("a/1"))
	assert.Error(t, index.find("a/3"))
	assert.Error(t, index.find("b/1"), "of another view")
}
