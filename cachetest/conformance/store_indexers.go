package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Checks of indexes that are added, missing or failing.

func checkIndexAdded(t *storeTrial) error {
	if err := t.write("add a=1", "add b=12", "add c=12"); err != nil {
		return err
	}
	if err := t.addIndexers(t.someIndexes()); err != nil {
		return err
	}
	if err := t.allIndexed(); err != nil {
		return err
	}
	if err := t.write("update b=3", "delete c=12"); err != nil {
		return err
	}
	return t.allIndexed()
}

// checkIndexAddedMeanwhile adds indexes while objects are written: none may be missing from them.
func checkIndexAddedMeanwhile(t *storeTrial) error {
	name := func(n int) string { return "x" + strconv.Itoa(n%writesOfOne) }
	for n := range writesOfOne {
		if err := t.write("add " + name(n) + "=1"); err != nil {
			return err
		}
	}
	added := make(chan error, 1)
	go func() { added <- guarded(func() error { return t.addIndexers(t.someIndexes()) }) }()
	err := t.inTime("adding indexes while the store is written", func() error {
		for n := 0; ; n++ {
			select {
			case err := <-added:
				return err
			default:
			}
			if err := t.write("update " + name(n) + "=" + strconv.Itoa(n)); err != nil {
				return errors.Join(err, <-added)
			}
		}
	})
	if err != nil {
		return err
	}
	return t.allIndexed()
}

func checkNoSuchIndex(t *storeTrial) error {
	reader := t.store.(indexReader)
	if err := t.write("add a=1"); err != nil {
		return err
	}
	_, byObject := reader.Index("none", t.object("a=1"))
	_, keys := reader.IndexKeys("none", "1")
	_, byValue := reader.ByIndex("none", "1")
	for name, err := range map[string]error{"Index": byObject, "IndexKeys": keys, "ByIndex": byValue} {
		if err == nil {
			return fmt.Errorf("%s with a name that no index has returned no error: a reader would take a misspelt name for nothing found", name)
		}
	}
	if values := reader.ListIndexFuncValues("none"); len(values) > 0 {
		return fmt.Errorf("ListIndexFuncValues with a name that no index has is %q", values)
	}
	return nil
}

func checkIndexInUse(t *storeTrial) error {
	if err := t.addIndexers(t.someIndexes()); err != nil {
		return err
	}
	if err := t.write("add a=1", "add b=12"); err != nil {
		return err
	}
	before, _ := t.indexNames()
	if err := t.addIndexers(map[string]indexFunc{"all": t.failing(""), "another": t.failing("")}); err == nil {
		return errors.New("AddIndexers with a name in use returned no error: two users would have one index")
	}
	if after, _ := t.indexNames(); !slices.Equal(before, after) {
		return fmt.Errorf("AddIndexers failed and the indexes are %q, no longer %q", after, before)
	}
	return t.allIndexed()
}

func checkIndexersCopied(t *storeTrial) error {
	if err := t.addIndexers(t.someIndexes()); err != nil {
		return err
	}
	before, indexers := t.indexNames()
	for _, name := range indexers.MapKeys() {
		indexers.SetMapIndex(name, reflect.Value{})
	}
	if after, _ := t.indexNames(); !slices.Equal(before, after) {
		return fmt.Errorf("a caller that emptied the map of GetIndexers left the indexes %q of %q", after, before)
	}
	if err := t.write("add a=1", "add b=12"); err != nil {
		return err
	}
	return t.allIndexed()
}

func checkIndexFailure(t *storeTrial) error {
	indexes := t.someIndexes()
	indexes["failing"] = t.failing("666")
	if err := t.addIndexers(indexes); err != nil {
		return err
	}
	if err := t.write("add a=1", "add b=12"); err != nil {
		return err
	}
	for name, call := range map[string]func(any) error{"Add": t.store.Add, "Update": t.store.Update} {
		for _, text := range []string{"a=666", "c=666"} {
			if err := call(t.object(text)); err == nil {
				return fmt.Errorf("%s of an object for which an index function fails returned no error", name)
			}
			if err := t.after(name+" of an object that cannot be indexed", "a=1", "b=12"); err != nil {
				return err
			}
			if err := t.allIndexed(); err != nil {
				return fmt.Errorf("after %s of an object that cannot be indexed: %w", name, err)
			}
		}
	}
	if _, err := t.store.(indexReader).Index("failing", t.object("x=666")); err == nil {
		return errors.New("an Index of an object for which the index function fails returned no error")
	}
	return nil
}

func checkIndexRefused(t *storeTrial) error {
	if err := t.write("add a=1", "add b=12"); err != nil {
		return err
	}
	indexes := t.someIndexes()
	indexes["failing"] = t.failing("12")
	if err := t.addIndexers(indexes); err == nil {
		return errors.New("AddIndexers with a function that fails for a stored object returned no error: the index would lack it forever")
	}
	if names, _ := t.indexNames(); len(names) > 0 {
		return fmt.Errorf("AddIndexers failed and added %q", names)
	}
	if err := t.addIndexers(t.someIndexes()); err != nil {
		return err
	}
	return t.allIndexed()
}
