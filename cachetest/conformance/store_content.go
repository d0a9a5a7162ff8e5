package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
)

// Checks of a store's content after writes.

func checkNewStore(t *storeTrial) error {
	if err := t.holds(); err != nil {
		return err
	}
	return t.absent("a=1")
}

func checkAdd(t *storeTrial) error {
	if err := t.write("add a=1", "add b=1"); err != nil {
		return err
	}
	if err := t.holds("a=1", "b=1"); err != nil {
		return err
	}
	return t.absent("c=1")
}

// checkUpdate mixes Add and Update: after a relist that hid a deletion, or in a watch from "0", either may come in
// place of the other.
func checkUpdate(t *storeTrial) error {
	if err := t.write("add a=1", "update a=2", "add a=3"); err != nil {
		return err
	}
	if err := t.after("Add, Update and Add of one object", "a=3"); err != nil {
		return err
	}
	if err := t.write("update b=1"); err != nil {
		return err
	}
	if err := t.after("Update of one that was not there", "a=3", "b=1"); err != nil {
		return err
	}
	if err := t.storedState("a=4", "a=3"); err != nil {
		return err
	}
	return t.checkRecreated()
}

// storedState checks what Get returns for another state of an object.
func (t *storeTrial) storedState(other, stored string) error {
	reader, ok := t.store.(storeReader)
	if !ok {
		return nil
	}
	item, exists, err := reader.Get(t.object(other))
	if err != nil || !exists || isNil(item) || t.textOf(item) != stored {
		return fmt.Errorf("Get of %s = %v, %v, %v where the store has %s", other, item, exists, err, stored)
	}
	return nil
}

// checkRecreated writes an object with another UID in place of one that the store has, as a reflector does if a list
// has hidden the deletion.
func (t *storeTrial) checkRecreated() error {
	writes := []struct {
		name  string
		write func(obj any) error
	}{
		{"Update", t.store.Update},
		{"Add", t.store.Add},
		{"Replace", func(obj any) error { return t.store.Replace([]any{obj, t.object("b=1")}, "90") }},
	}
	for n, way := range writes {
		t.versions++
		mark := strconv.Itoa(n + 5)
		recreated := t.config.Object(StoreObject{
			Name: "a", Mark: mark, UID: types.UID("uid-of-" + way.name), ResourceVersion: strconv.Itoa(t.versions),
		})
		if err := way.write(recreated); err != nil {
			return fmt.Errorf("%s of an object with another UID: %w", way.name, err)
		}
		if err := t.after(way.name+" of an object with another UID", "a="+mark, "b=1"); err != nil {
			return err
		}
	}
	return nil
}

func checkDelete(t *storeTrial) error {
	if err := t.write("add a=1", "add b=1", "delete a=2"); err != nil {
		return err
	}
	if err := t.after("Delete with another state of the object", "b=1"); err != nil {
		return err
	}
	if err := t.absent("a=1"); err != nil {
		return err
	}
	if err := t.write("delete a=2", "delete c=1"); err != nil {
		return fmt.Errorf("the deletion of an absent object is no mistake, since a watch may deliver it twice: %w", err)
	}
	if err := t.after("the deletion of an absent object", "b=1"); err != nil {
		return err
	}
	if err := t.write("add a=3"); err != nil {
		return err
	}
	return t.after("an Add after a Delete", "a=3", "b=1")
}

// checkTombstone deletes as a reflector does if a deletion cannot be decoded, or is of an object of another shard.
func checkTombstone(t *storeTrial) error {
	if err := t.write("add a=1", "add b=1", "add d=1"); err != nil {
		return err
	}
	readsTombstones := true
	for _, tombstone := range []cache.DeletedFinalStateUnknown{
		{Key: t.config.Key(t.object("a=1"))},
		{Key: t.config.Key(t.object("c=1"))},
		{Key: t.config.Key(t.object("d=1")), Obj: t.object("d=1")}, // as a queue makes it
	} {
		key := tombstone.Key
		err := t.store.Delete(tombstone)
		if isKeyError(err) {
			// Its key function reads no tombstones: a reflector deletes with what it knows of the object.
			readsTombstones = false
			continue
		}
		if err != nil {
			return fmt.Errorf("Delete of a cache.DeletedFinalStateUnknown with the key %q: %w: a reflector could not delete an object "+
				"whose last state is unknown", key, err)
		}
	}
	if !readsTombstones {
		return nil
	}
	return t.after("Delete of a cache.DeletedFinalStateUnknown", "b=1")
}

// isKeyError recognizes the KeyError of this library and of client-go by its name.
func isKeyError(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err).Name() == "KeyError" {
			return true
		}
	}
	return false
}

func checkReplace(t *storeTrial) error {
	if err := t.write("add a=1", "add b=1"); err != nil {
		return err
	}
	if err := t.replace("7", "b=2", "c=1"); err != nil {
		return err
	}
	if err := t.after("Replace: what a relist lacks has been deleted", "b=2", "c=1"); err != nil {
		return err
	}
	if err := t.absent("a=1"); err != nil {
		return err
	}
	if err := t.replace("8", "a=2", "c=1"); err != nil {
		return err
	}
	if err := t.after("a second Replace", "a=2", "c=1"); err != nil {
		return err
	}
	if err := t.replace("9"); err != nil {
		return err
	}
	if err := t.after("Replace with nothing"); err != nil {
		return err
	}
	if err := t.store.Replace(nil, "10"); err != nil {
		return fmt.Errorf("a Replace with a nil list: %w", err)
	}
	if err := t.write("add a=3"); err != nil {
		return err
	}
	return t.after("an Add after Replace", "a=3")
}

func checkResync(t *storeTrial) error {
	if err := t.replace("7", "a=1", "b=1"); err != nil {
		return err
	}
	if err := t.holds("a=1", "b=1"); err != nil {
		return err
	}
	if err := t.store.Resync(); err != nil {
		return fmt.Errorf("a Resync, whose error ends a reflector's watch: %w", err)
	}
	return t.after("Resync", "a=1", "b=1")
}

func checkUnkeyable(t *storeTrial) error {
	if err := t.write("add a=1", "add b=1"); err != nil {
		return err
	}
	for name, call := range map[string]func(any) error{"Add": t.store.Add, "Update": t.store.Update, "Delete": t.store.Delete} {
		if err := call(t.config.Unkeyable()); err == nil {
			return fmt.Errorf("%s of an object without a key returned no error: a reflector could not report it", name)
		}
	}
	if reader, ok := t.store.(storeReader); ok {
		if item, exists, err := reader.Get(t.config.Unkeyable()); err == nil || exists || item != nil {
			return fmt.Errorf("Get of an object without a key = %v, %v, %v", item, exists, err)
		}
	}
	return t.after("writes that failed", "a=1", "b=1")
}

// checkUnkeyableInList allows a store to accept the rest of the list or none of it.
func checkUnkeyableInList(t *storeTrial) error {
	if err := t.replace("7", "a=1", "b=1"); err != nil {
		return err
	}
	if err := t.holds("a=1", "b=1"); err != nil {
		return err
	}
	list := slices.Insert(t.objects("b=2", "c=1"), 1, t.config.Unkeyable())
	if err := t.store.Replace(list, "8"); err == nil {
		return errors.New("a Replace with an object without a key returned no error: a reflector could not report it")
	}
	others, none := t.holds("b=2", "c=1"), t.holds("a=1", "b=1")
	if others != nil && none != nil {
		return fmt.Errorf("of a list with one object without a key a store takes all others or nothing: %w", others)
	}
	return nil
}

func checkReturned(t *storeTrial) error {
	reader := t.store.(storeReader)
	if err := t.write("add a=1", "add b=1"); err != nil {
		return err
	}
	clear(reader.List())
	clear(reader.ListKeys())
	if err := t.holds("a=1", "b=1"); err != nil {
		return fmt.Errorf("after a caller changed the slices that List and ListKeys returned: %w", err)
	}
	before := reader.List()
	held := slices.Clone(before)
	if err := t.write("delete a=1", "add c=1"); err != nil {
		return err
	}
	if err := t.holds("b=1", "c=1"); err != nil {
		return err
	}
	for at, obj := range before {
		if isNil(obj) || t.textOf(obj) != t.textOf(held[at]) {
			return errors.New("a slice that List returned before changed with the store")
		}
	}
	return nil
}
