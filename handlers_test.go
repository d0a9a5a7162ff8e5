package cache

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

func TestEachKindOfNotificationMakesItsCalls(t *testing.T) {
	var calls []string
	handler := ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { calls = append(calls, fmt.Sprint("OnAdd ", obj, " ", initial)) },
		UpdateFunc: func(old, obj any) { calls = append(calls, fmt.Sprint("OnUpdate ", old, " ", obj)) },
		DeleteFunc: func(obj any) { calls = append(calls, fmt.Sprint("OnDelete ", obj)) },
	}
	want := map[string][]string{
		"add": {"OnAdd 2 true"}, "update": {"OnUpdate 1 2"}, "resync": {"OnUpdate 2 2"},
		"delete": {"OnDelete 1"}, "recreated": {"OnDelete 1", "OnAdd 2 true"},
	}
	for name, kind := range map[string]eventlog.Kind{
		"add": eventlog.Add, "update": eventlog.Update, "resync": eventlog.Resync, "delete": eventlog.Delete, "recreated": eventlog.Recreate,
	} {
		n := notification{Kind: kind, Old: "1", New: "2", Initial: true}
		calls = nil
		l := &listener{handler: handler}
		l.deliver(bg, &n)
		assert.Equal(t, want[name], calls)
	}
}

// Fails if a change of UID passes for an update, or MergeRecreated is not heeded.
func TestAnAppliedChangeHasItsNotification(t *testing.T) {
	was, is := podAt("a", "1", "5"), podAt("a", "1", "6")
	final := podAt("a", "1", "7")
	tombstone := DeletedFinalStateUnknown{Key: "a/1", Obj: was}
	for name, c := range map[string]struct {
		change change
		merge  bool
		want   notification
	}{
		"new":               {change: change{kind: Added, object: is}, want: notification{Kind: eventlog.Add, New: is}},
		"changed":           {change: change{kind: Updated, object: is, existed: true, old: was}, want: notification{Kind: eventlog.Update, Old: was, New: is}},
		"recreated":         {change: change{kind: Updated, object: is, existed: true, recreated: true, old: was}, want: notification{Kind: eventlog.Recreate, Old: tombstone, New: is}},
		"recreated, merged": {change: change{kind: Updated, object: is, existed: true, recreated: true, old: was}, merge: true, want: notification{Kind: eventlog.Update, Old: was, New: is}},
		"gone":              {change: change{kind: Deleted, object: final, existed: true, old: was}, want: notification{Kind: eventlog.Delete, Old: final}},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.key, c.want.Key = table.KeyOf("a/1"), table.KeyOf("a/1")
			var n notification
			setNotification(&n, &c.change, false, c.merge)
			assert.Equal(t, c.want, n)
		})
	}
}

// The status counts the changes that came together and were not delivered yet, and says since when the
// oldest has waited, during each call.
func TestTheStatusCountsPendingChangesDuringEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 11
		source := newBulk(objects)
		r := newBulkRig(t, source)
		told := newReplica(t)
		step := make(chan struct{})
		told.before = func(string) { <-step }
		r.handle(told)
		r.run()
		for n := range objects {
			sleep(time.Second)
			status := r.handlerStatus(0)
			assert.Equal(t, objects-1-n, status.Backlog)
			age := time.Duration(n+1) * time.Second
			if n == objects-1 {
				age = 0
			}
			assert.Equal(t, age, status.OldestAge, n)
			step <- struct{}{}
		}
		synctest.Wait()
		assert.Zero(t, r.handlerStatus(0).Backlog)
		close(step)
		r.cancel()
		<-r.done
	})
}

// A handler that is removed during a call is not called for the changes that waited, and its
// registration, which the caller may keep, does not keep the log.
func TestAHandlerThatIsRemovedDuringACallIsNotCalledAgain(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector's own memory would be measured")
	}
	synctest.Test(t, func(t *testing.T) {
		source := newBulk(3)
		r := newBulkRig(t, source)
		slow, goOn := stalled(t)
		handle := r.handle(slow)
		r.handle(ResourceEventHandlerFuncs{}) // for whom the log goes on
		r.run()
		synctest.Wait()
		require.NoError(t, r.inf.RemoveHandler(handle))
		before := heap()
		for i := range 10_000 {
			source.events <- watch.Event{Type: watch.Modified, Object: kibiObject("0", i+4)}
		}
		synctest.Wait()
		assert.LessOrEqual(t, heap()-before, int64(2<<20))
		goOn()
		synctest.Wait()
		assert.Equal(t, []string{"add a/0@1"}, slow.take())
		runtime.KeepAlive(handle)
		r.cancel()
		<-r.done
	})
}

// callLog writes down what a handler is told.
type callLog struct{ told []string }

func (e *callLog) OnAdd(obj any, isInInitialList bool) {
	e.told = append(e.told, fmt.Sprint("add ", labelOf(obj), " ", isInInitialList))
}

func (e *callLog) OnUpdate(oldObj, newObj any) {
	e.told = append(e.told, fmt.Sprint("update ", labelOf(oldObj), " ", labelOf(newObj)))
}

func (e *callLog) OnDelete(obj any) { e.told = append(e.told, fmt.Sprint("delete ", labelOf(obj))) }

func (e *callLog) take() []string {
	told := e.told
	e.told = nil
	return told
}

func labelOf(obj any) string {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return "tombstone " + tombstone.Key
	}
	return obj.(*object).Labels["v"]
}

var (
	redPod   = labelled(pod("a", "1"), "red")
	bluePod  = labelled(pod("a", "1"), "blue")
	blackPod = labelled(pod("a", "1"), "black")
)

func isColoured(o *object) bool { return o.Labels["v"] != "black" }

func TestAFilteringHandlerShowsOnlyWhatPasses(t *testing.T) {
	told := &callLog{}
	untyped := FilteringResourceEventHandler{Handler: told, FilterFunc: func(obj any) bool {
		o, alive := obj.(*object)
		return !alive || isColoured(o)
	}}
	// The same through the typed form and the bridge must come to the same.
	typed := typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{
		FilterFunc: isColoured,
		Handler:    typedEventLog{told},
	}}
	for name, h := range map[string]ResourceEventHandler{"untyped": untyped, "typed": typed} {
		t.Run(name, func(t *testing.T) {
			h.OnAdd(redPod, true)
			h.OnAdd(blackPod, true)
			h.OnAdd(bluePod, false)
			assert.Equal(t, []string{"add red true", "add blue false"}, told.take())
			h.OnUpdate(redPod, bluePod)
			h.OnUpdate(blackPod, redPod)
			h.OnUpdate(bluePod, blackPod)
			h.OnUpdate(blackPod, blackPod)
			assert.Equal(t, []string{"update red blue", "add red false", "delete blue"}, told.take())
			h.OnDelete(redPod)
			h.OnDelete(blackPod)
			h.OnDelete(DeletedFinalStateUnknown{Key: "a/1"})
			assert.Equal(t, []string{"delete red", "delete tombstone a/1"}, told.take())
		})
	}
}

// typedEventLog tells callLog what a typed handler is told.
type typedEventLog struct{ *callLog }

func (e typedEventLog) OnAdd(obj *object, isInInitialList bool) {
	e.callLog.OnAdd(obj, isInInitialList)
}
func (e typedEventLog) OnUpdate(oldObj, newObj *object) { e.callLog.OnUpdate(oldObj, newObj) }

func (e typedEventLog) OnDelete(obj DeletedObject[*object]) {
	if obj.FinalStateUnknown != nil {
		e.callLog.OnDelete(*obj.FinalStateUnknown)
		return
	}
	e.callLog.OnDelete(obj.OptionalObj)
}

func TestANilFilterLetsAllPassAndANilHandlerIsNotCalled(t *testing.T) {
	told := &callLog{}
	all := map[string]ResourceEventHandler{
		"untyped": FilteringResourceEventHandler{Handler: told},
		"typed":   typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{Handler: typedEventLog{told}}},
	}
	for name, h := range all {
		h.OnAdd(blackPod, false)
		h.OnUpdate(blackPod, redPod)
		h.OnDelete(blackPod)
		assert.Equal(t, []string{"add black false", "update black red", "delete black"}, told.take(), name)
	}
	never := func() { t.Error("filter called") }
	for _, h := range []ResourceEventHandler{
		FilteringResourceEventHandler{},
		FilteringResourceEventHandler{FilterFunc: func(any) bool { never(); return true }},
		typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{FilterFunc: func(*object) bool { never(); return true }}},
	} {
		h.OnAdd(redPod, true)
		h.OnUpdate(redPod, bluePod)
		h.OnDelete(redPod)
	}
}

func TestAPanicOfAFilterIsAPanicOfTheHandler(t *testing.T) {
	h := FilteringResourceEventHandler{Handler: &callLog{}, FilterFunc: func(any) bool { panic(errBoom) }}
	assert.PanicsWithValue(t, errBoom, func() { h.OnAdd(redPod, true) })
	assert.PanicsWithValue(t, errBoom, func() { h.OnUpdate(redPod, bluePod) })
	assert.PanicsWithValue(t, errBoom, func() { h.OnDelete(redPod) })
}

func TestAHandlerHasThePlaceThatAddsItAsItsName(t *testing.T) {
	informer := NewInformerFor(newSource(t), InformerConfig[*object]{})
	_, err := informer.AddHandler(TypedResourceEventHandlerFuncs[*object]{})
	require.NoError(t, err)
	require.Regexp(t, `\.go:\d+$`, informer.Status().Handlers[0].Name)
}
