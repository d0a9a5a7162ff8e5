package guarantees

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
)

// versionOf is the version of one of the model's objects as a number.
func versionOf(obj any) int {
	received := receivedOf(obj)
	version, _ := strconv.Atoi(received.ResourceVersion)
	return version
}

// items are objects of namespace a with versions, as a list: name, version, ...
func items(namesAndVersions ...string) (list []any) {
	for i := 0; i < len(namesAndVersions); i += 2 {
		list = append(list, podAt("a", namesAndVersions[i], namesAndVersions[i+1]))
	}
	return list
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// foreign is a store of somebody else's: nothing but a ReflectorStore, and what a
// test embeds beside it. It writes down its calls.
type foreign struct{ calls []string }

func (f *foreign) take() []string { calls := f.calls; f.calls = nil; return calls }

func (f *foreign) note(call string, obj any) error {
	f.calls = append(f.calls, fmt.Sprintf("%s %s", call, nameOf(obj)))
	return nil
}

func (f *foreign) Add(obj any) error { return f.note("add", obj) }

func (f *foreign) Update(obj any) error { return f.note("update", obj) }

func (f *foreign) Delete(obj any) error { return f.note("delete", obj) }

func (f *foreign) Resync() error { return nil }

func (f *foreign) Replace(list []any, version string) error {
	call := "replace"
	for _, obj := range list {
		call += " " + nameOf(obj)
	}
	f.calls = append(f.calls, call+" @"+version)
	return nil
}

// podAt is an object at a version; its UID is its name unless changed.
func podAt(namespace, name, version string) *object {
	o := pod(namespace, name)
	o.UID, o.ResourceVersion = types.UID(name), version
	return o
}

// tagged gives a state values for the index byTag.
func tagged(o *object, tags ...string) *object {
	o = o.DeepCopy()
	o.Annotations = map[string]string{"tags": strings.Join(tags, ",")}
	return o
}

const tagIndex = "tag"

// byTag is an index function with none, one or several values, the empty one and
// doublets among them; it fails for the tag "bad" and panics for "panic".
func byTag(obj any) ([]string, error) {
	accessor, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	tags, ok := accessor.GetAnnotations()["tags"]
	if !ok {
		return nil, nil
	}
	values := strings.Split(tags, ",")
	for _, value := range values {
		switch value {
		case "bad":
			return nil, errBoom
		case "panic":
			panic("tag panics")
		}
	}
	return values, nil
}

// contents returns key to version.
func contents(s cache.Store) map[string]string {
	held := map[string]string{}
	for _, obj := range s.List() {
		received := receivedOf(obj)
		held[nameOf(obj)] = received.ResourceVersion
	}
	return held
}

// failIfBad is a user function's error for a bad object.
func failIfBad(obj any) error {
	if isBad(obj) {
		return errBoom
	}
	return nil
}

// heldVersions are the versions of the quarantined objects of a status, by key.
func heldVersions(s cache.Status) map[string]string {
	held := map[string]string{}
	for _, q := range s.Quarantined {
		held[q.Key] = q.ResourceVersion
	}
	return held
}
