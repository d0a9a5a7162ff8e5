package conformance

import (
	"errors"
	"fmt"
	"reflect"
)

// Checks of a store's versions.

type versionHolder interface{ LastStoreSyncResourceVersion() string }

// Bookmark has two signatures: a Store's, and that of an optional interface of a ReflectorStore.
type (
	bookmarked      interface{ Bookmark(resourceVersion string) }
	bookmarkedOrErr interface {
		Bookmark(resourceVersion string) error
	}
	versionTaker interface{ UpdateResourceVersion(resourceVersion string) }
)

// tellings are the methods that set the store's version.
func (t *storeTrial) tellings() map[string]func(string) error {
	tellings := map[string]func(string) error{}
	if s, ok := t.store.(bookmarked); ok {
		tellings["Bookmark"] = func(version string) error { s.Bookmark(version); return nil }
	}
	if s, ok := t.store.(bookmarkedOrErr); ok {
		tellings["Bookmark"] = s.Bookmark
	}
	if s, ok := t.store.(versionTaker); ok {
		tellings["UpdateResourceVersion"] = func(version string) error { s.UpdateResourceVersion(version); return nil }
	}
	return tellings
}

func lacksVersion(t *storeTrial) string {
	if _, ok := t.store.(versionHolder); !ok {
		return "the store has no LastStoreSyncResourceVersion"
	}
	return ""
}

func lacksTelling(t *storeTrial) string {
	if len(t.tellings()) == 0 {
		return "the store has neither Bookmark nor UpdateResourceVersion"
	}
	return ""
}

func (t *storeTrial) isAt(version, after string) error {
	if got := t.store.(versionHolder).LastStoreSyncResourceVersion(); got != version {
		return fmt.Errorf("LastStoreSyncResourceVersion is %q after %s, not %q: a wait for a version would never end, or not long enough", got, after, version)
	}
	return nil
}

func checkVersion(t *storeTrial) error {
	if err := t.isAt("", "nothing"); err != nil {
		return err
	}
	if err := t.replace("70", "a=1"); err != nil {
		return err
	}
	if err := t.isAt("70", "Replace at 70"); err != nil {
		return err
	}
	for name, tell := range t.tellings() {
		if err := t.replace("80", "a=1"); err != nil {
			return err
		}
		if err := tell("90"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := t.isAt("90", name+" of 90"); err != nil {
			return err
		}
	}
	if err := t.replace("5", "a=1"); err != nil {
		return err
	}
	return t.isAt("5", "Replace at 5, from a server that was restored")
}

func checkTelling(t *storeTrial) error {
	if err := t.replace("70", "a=1", "b=1"); err != nil {
		return err
	}
	for name, tell := range t.tellings() {
		if err := tell("90"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := t.after(name, "a=1", "b=1"); err != nil {
			return err
		}
	}
	return nil
}

// received calls ObjectVersion by reflection, because its result type differs between packages.
func (t *storeTrial) received(key string) (uid, version string, known bool) {
	out := reflect.ValueOf(t.store).MethodByName("ObjectVersion").Call([]reflect.Value{reflect.ValueOf(key)})
	return out[0].FieldByName("UID").String(), out[0].FieldByName("ResourceVersion").String(), out[1].Bool()
}

func lacksReceived(t *storeTrial) string {
	const missing = "the store has no ObjectVersion(key) with a UID and a ResourceVersion"
	method := reflect.ValueOf(t.store).MethodByName("ObjectVersion")
	if !method.IsValid() {
		return missing
	}
	of := method.Type()
	if of.NumIn() != 1 || of.In(0).Kind() != reflect.String || of.NumOut() != 2 ||
		of.Out(0).Kind() != reflect.Struct || of.Out(1).Kind() != reflect.Bool {
		return missing
	}
	for _, field := range []string{"UID", "ResourceVersion"} {
		if f, ok := of.Out(0).FieldByName(field); !ok || f.Type.Kind() != reflect.String {
			return missing
		}
	}
	return ""
}

func checkReceived(t *storeTrial) error {
	obj := t.config.Object(StoreObject{Name: "a", Mark: "1", UID: "uid-1", ResourceVersion: "11"})
	key := t.config.Key(obj)
	if _, _, known := t.received(key); known {
		return errors.New("something was received of an object that is not there")
	}
	if err := t.store.Add(obj); err != nil {
		return fmt.Errorf("the Add: %w", err)
	}
	if uid, version, known := t.received(key); uid != "uid-1" || version != "11" || !known {
		return fmt.Errorf("ObjectVersion returned %q, %q, %v for an object with UID uid-1 at version 11: a queue would take a changed object for unchanged, or the other way round", uid, version, known)
	}
	if err := t.store.Delete(obj); err != nil {
		return fmt.Errorf("the Delete: %w", err)
	}
	if _, _, known := t.received(key); known {
		return errors.New("something was received of an object that is deleted: a queue would take one made again for unchanged")
	}
	return nil
}
