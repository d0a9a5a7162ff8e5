package cache

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// knownMap is the plainest KnownObjects there is: it has no record of what was
// received. A nil object stands for one that cannot be read.
type knownMap map[string]*object

func knowing(objects ...*object) knownMap {
	m := knownMap{}
	for _, o := range objects {
		m[nameOf(o)] = o
	}
	return m
}

func (m knownMap) ListKeys() []string { return slices.Sorted(maps.Keys(m)) }

func (m knownMap) GetByKey(key string) (any, bool, error) {
	obj, ok := m[key]
	if ok && obj == nil {
		return nil, false, errBoom
	}
	return obj, ok, nil
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// said puts a delta in words: "Added a/1@3", "Deleted tombstone a/1@3".
func said(d Delta) string {
	switch obj := d.Object.(type) {
	case BookmarkInfo:
		return fmt.Sprintf("%s @%s", d.Type, obj.ResourceVersion)
	case DeletedFinalStateUnknown:
		version := "nothing"
		if o, ok := obj.Obj.(*object); ok {
			version = "@" + o.ResourceVersion
		}
		return fmt.Sprintf("%s tombstone %s %s", d.Type, obj.Key, version)
	case *object:
		return fmt.Sprintf("%s %s@%s%s", d.Type, nameOf(obj), obj.ResourceVersion, obj.Labels["v"])
	}
	return fmt.Sprintf("%s %v", d.Type, d.Object)
}

func allSaid(deltas []Delta) (words []string) {
	for _, d := range deltas {
		words = append(words, said(d))
	}
	return words
}

// hasPending fails the test rather than to let it wait for ever.
func hasPending(t *testing.T, f *DeltaFIFO) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotZero(t, f.log.pending, "nothing is pending")
}

// popped takes out one key's changes, in words.
func popped(t *testing.T, f *DeltaFIFO) string {
	t.Helper()
	hasPending(t, f)
	got, err := f.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	return strings.Join(allSaid(got.(Deltas)), ", ")
}

// drained pops until nothing is pending.
func drained(t *testing.T, f *DeltaFIFO) (words []string) {
	t.Helper()
	for len(f.log.pendingKeys()) > 0 {
		words = append(words, popped(t, f))
	}
	return words
}

func TestPopHandsOutAllChangesOfTheKeyThatHasWaitedLongest(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: knowing()})
	must(t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")), f.Update(podAt("a", "1", "3")),
		f.Add(podAt("a", "3", "4")), f.Delete(podAt("a", "1", "5")), f.Add(podAt("a", "1", "6")))
	assert.Equal(t, "Added a/1@1, Updated a/1@3, Deleted a/1@5, Added a/1@6", popped(t, f))
	// A key that comes anew waits behind those that are there.
	must(t, f.Update(podAt("a", "1", "7")))
	assert.Equal(t, []string{"Added a/2@2", "Added a/3@4", "Updated a/1@7"}, drained(t, f))
}

func TestADeletionOfWhatIsNotThereIsIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		known KeyListerGetter
		want  []string
	}{
		"without known objects": {nil, nil},
		"with":                  {knowing(podAt("a", "1", "1")), []string{"Deleted a/1@2"}},
		"that cannot be read":   {knownMap{"a/2": nil}, []string{"Deleted a/2@3"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: tc.known})
			must(t, f.Delete(podAt("a", "1", "2")), f.Delete(podAt("a", "2", "3")))
			assert.Equal(t, tc.want, drained(t, f))
			assert.True(t, f.HasSynced(), "that something came is enough")
		})
	}
}

// What is being processed is there: the consumer will hold it in a moment. Fails
// if only what is queued or known counts (S17).
func TestADeletionOfWhatIsBeingProcessedIsTaken(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")))
	_, err := f.Pop(func(any, bool) error { return f.Delete(podAt("a", "1", "3")) })
	must(t, err)
	assert.Equal(t, []string{"Added a/2@2", "Deleted a/1@3"}, drained(t, f))

	// The other way round: it is as good as gone.
	holds := knowing(podAt("a", "1", "1"))
	f = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: holds})
	must(t, f.Delete(podAt("a", "1", "2")))
	_, err = f.Pop(func(any, bool) error { return f.Delete(podAt("a", "1", "3")) })
	must(t, err)
	assert.Empty(t, drained(t, f))
}

func TestResyncRepeatsWhatIsKnownAndNotOnItsWay(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{
		KnownObjects: knownMap{
			"a/1": podAt("a", "1", "1"), "a/2": podAt("a", "2", "2"), "a/3": podAt("a", "3", "3"), "a/bad": nil,
		},
		// B21, kubernetes#124337: what is resynced has been transformed.
		Transformer: func(obj any) (any, error) { return labelled(obj.(*object), " transformed"), nil },
	})
	assertUnread(t, "a/bad", f.Resync())
	assert.False(t, f.HasSynced(), "a resync is no list")
	drained(t, f)
	must(t, f.Update(podAt("a", "3", "5")), f.Update(podAt("a", "2", "4")))
	_, err := f.Pop(func(any, bool) error { return f.Resync() })
	assertUnread(t, "a/bad", err)
	assert.Equal(t, []string{"Updated a/2@4 transformed", "Sync a/1@1"}, drained(t, f))

	f = NewDeltaFIFO(MetaNamespaceKeyFunc, nil)
	must(t, f.Add(podAt("a", "1", "1")), f.Resync())
	assert.Equal(t, []string{"Added a/1@1"}, drained(t, f))
}

// listsMore lists a key that it does not have, as a store does that is changed
// between two calls.
type listsMore struct{ knownMap }

func (l listsMore) ListKeys() []string { return append(l.knownMap.ListKeys(), "a/gone") }

func TestAKnownKeyWithNothingUnderItIsNotResynced(t *testing.T) {
	var out bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Logger: &logger, Name: "pods", KnownObjects: listsMore{knowing(podAt("a", "1", "1"))}})
	must(t, f.Resync())
	assert.Equal(t, []string{"Sync a/1@1"}, drained(t, f))
	assert.Contains(t, out.String(), "a/gone")
	assert.Contains(t, out.String(), "pods")
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	must(t, f.Replace(nil, "2"))
	assert.Equal(t, []string{"Deleted tombstone a/1 @1", "Deleted tombstone a/gone nothing"}, drained(t, f))
}

func TestAClosedQueueHandsOutWhatIsLeft(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")))
	assert.False(t, f.IsClosed())
	f.Close()
	f.Close()
	assert.True(t, f.IsClosed())
	must(t, f.Add(podAt("a", "2", "2")))
	assert.Equal(t, []string{"Added a/1@1", "Added a/2@2"}, drained(t, f))
	_, err := f.Pop(func(any, bool) error { return nil })
	assert.ErrorIs(t, err, ErrFIFOClosed)
	assert.ErrorIs(t, f.PopBatch(func([]Delta, bool) error { return nil }, nil), ErrFIFOClosed)
	assert.ErrorIs(t, popPending(f, func(batch) error { return nil }), ErrFIFOClosed)
}

// B4 for the queue. Fails if Close does not wake those who wait.
func TestCloseEndsAWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		began := time.Now()
		ended := make(chan error, 3)
		go func() {
			_, err := f.Pop(func(any, bool) error { return nil })
			ended <- err
		}()
		go func() { ended <- f.PopBatch(func([]Delta, bool) error { return nil }, nil) }()
		go func() { ended <- popPending(f, func(batch) error { return nil }) }()
		synctest.Wait()
		f.Close()
		for range 3 {
			assert.ErrorIs(t, <-ended, ErrFIFOClosed)
		}
		assert.Zero(t, time.Since(began))
	})
}

// A slow consumer holds back nobody who puts something in, and nobody else
// processes meanwhile. Fails if the lock is held while process runs, or if turn
// is not looked at.
func TestASlowConsumerHoldsBackOtherConsumersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		began := time.Now()
		var order []string
		slow := func(obj any, _ bool) error {
			order = append(order, "begin")
			time.Sleep(time.Minute)
			order = append(order, said(*obj.(Deltas).Newest()))
			return nil
		}
		done := make(chan struct{})
		for range 2 {
			go func() {
				_, err := f.Pop(slow)
				assert.NoError(t, err)
				done <- struct{}{}
			}()
		}
		must(t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")))
		synctest.Wait()
		must(t, f.Update(podAt("a", "1", "3")), f.Replace([]any{podAt("a", "1", "3"), podAt("a", "2", "4")}, "4"), f.Resync())
		assert.Zero(t, time.Since(began))
		<-done
		<-done
		assert.Equal(t, 2*time.Minute, time.Since(began))
		assert.Equal(t, []string{"begin", "Added a/1@1", "begin", "Sync a/2@4"}, order)
	})
}

func TestWhatProcessRefusesIsNotHandedOutAgain(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	must(t, f.Replace([]any{podAt("a", "1", "1")}, "1"))
	got, err := f.Pop(func(any, bool) error { return errBoom })
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, []string{"Sync a/1@1"}, allSaid(got.(Deltas)))
	assert.Zero(t, len(f.log.pendingKeys()))
	assert.Equal(t, "1", f.processedVersion())
	assert.True(t, f.HasSynced())
}

// Fails if what is handed out is cleaned up only when process returns.
func TestAPanicOfProcessPassesThroughAndLeavesTheQueueUsable(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")))
	assert.PanicsWithValue(t, errBoom, func() { _, _ = f.Pop(func(any, bool) error { panic(errBoom) }) })
	assert.Equal(t, []string{"Added a/2@2"}, drained(t, f))
	must(t, f.Delete(podAt("a", "1", "3")))
	assert.Empty(t, drained(t, f), "it is not being processed any more")
}

func TestPopNeedsAFunction(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")))
	_, err := f.Pop(nil)
	assert.Error(t, err)
	assert.Error(t, f.PopBatch(nil, nil))
	assert.Equal(t, []string{"Added a/1@1"}, drained(t, f), "nothing was taken")
}

func TestKeyOfReadsWhatComesOutOfTheQueue(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: func(obj any) (string, error) {
		if obj == "panics" {
			panic(errBoom)
		}
		return obj.(string), nil
	}})
	for name, tc := range map[string]struct {
		obj any
		key string
		err error
	}{
		"an object":           {"x", "x", nil},
		"a tombstone":         {DeletedFinalStateUnknown{Key: "x", Obj: "y"}, "x", nil},
		"deltas":              {Deltas{{Added, "x"}, {Updated, "y"}}, "y", nil},
		"of which one is one": {Deltas{{Added, "x"}, {Deleted, DeletedFinalStateUnknown{Key: "z"}}}, "z", nil},
		"no deltas":           {Deltas{}, "", ErrZeroLengthDeltasObject},
		"nothing":             {nil, "", ErrNilObject},
		"a nil pointer":       {(*object)(nil), "", ErrNilObject},
		"an empty key":        {"", "", ErrEmptyKey},
		"an empty tombstone":  {DeletedFinalStateUnknown{}, "", ErrEmptyKey},
		"a panic":             {"panics", "", errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := f.KeyOf(tc.obj)
			assert.Equal(t, tc.key, key)
			assert.ErrorIs(t, err, tc.err)
		})
	}
	var failed KeyError
	_, err := f.KeyOf(Deltas{})
	assert.ErrorAs(t, err, &failed)
}

func TestAQueueIsNamed(t *testing.T) {
	assert.Equal(t, "DeltaFIFO", NewDeltaFIFO(nil, nil).Name())
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Name: "pods", Transformer: func(obj any) (any, error) { return obj, nil }})
	assert.Equal(t, "pods", f.Name())
	assert.Equal(t, "pods", f.HasSyncedChecker().Name())
	assert.NotNil(t, f.Transformer())
	key, err := NewDeltaFIFO(nil, nil).KeyOf(pod("a", "1"))
	assert.NoError(t, err)
	assert.Equal(t, "a/1", key, "the default key function")
}

// A Pop that keeps many keys waiting is logged.
func TestASlowPopIsTraced(t *testing.T) {
	var out bytes.Buffer
	state := klog.CaptureState()
	defer state.Restore()
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	must(t, flags.Set("v", "2"))
	klog.LogToStderr(false)
	klog.SetOutput(&out)
	defer klog.SetOutput(io.Discard)
	synctest.Test(t, func(t *testing.T) {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		for i := range slowPopDepth + 2 {
			must(t, f.Add(podAt("a", itoa(i), "1")))
		}
		for range 2 {
			_, err := f.Pop(func(any, bool) error {
				time.Sleep(2 * slowPop)
				return nil
			})
			must(t, err)
		}
	})
	klog.Flush()
	assert.Contains(t, out.String(), "key:a/0")
	assert.NotContains(t, out.String(), "key:a/1", "ten keys behind it are not many")
}
