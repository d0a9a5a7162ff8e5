package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// storeReader has the methods that a Store has in addition to a ReflectorStore.
type storeReader interface {
	List() []any
	ListKeys() []string
	Get(obj any) (item any, exists bool, err error)
	GetByKey(key string) (item any, exists bool, err error)
}

func lacksReading(t *storeTrial) string {
	if _, ok := t.store.(storeReader); !ok {
		return "the store has no List, ListKeys, Get and GetByKey"
	}
	return ""
}

// object makes an object from "name=mark", with a newer version than all before it.
func (t *storeTrial) object(text string) any {
	name, mark, _ := strings.Cut(text, "=")
	t.versions++
	return t.config.Object(StoreObject{
		Name: name, Mark: mark, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(t.versions),
	})
}

func (t *storeTrial) objects(texts ...string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, t.object(text))
	}
	return list
}

// textOf is the inverse of object.
func (t *storeTrial) textOf(obj any) string {
	key := t.config.Key(obj)
	return key[strings.LastIndex(key, "/")+1:] + "=" + t.config.Mark(obj)
}

// write makes writes, each written as "add a=1", "update a=2" or "delete a=2". None may fail.
func (t *storeTrial) write(writes ...string) error {
	for _, text := range writes {
		verb, what, _ := strings.Cut(text, " ")
		obj := t.object(what)
		var err error
		switch verb {
		case "add":
			err = t.store.Add(obj)
		case "update":
			err = t.store.Update(obj)
		case "delete":
			err = t.store.Delete(obj)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (t *storeTrial) replace(version string, texts ...string) error {
	if err := t.store.Replace(t.objects(texts...), version); err != nil {
		return fmt.Errorf("a Replace with %q: %w", texts, err)
	}
	return nil
}

// content returns the store's content by key. It checks that all reading methods agree.
func (t *storeTrial) content() (map[string]string, error) {
	objects, err := t.listed()
	if err != nil {
		return nil, err
	}
	content := map[string]string{}
	for _, obj := range objects {
		if isNil(obj) {
			return nil, errors.New("the content has a nil: a reader would dereference it")
		}
		key := t.config.Key(obj)
		if _, twice := content[key]; twice {
			return nil, fmt.Errorf("%s is there twice: a reader would count it twice", key)
		}
		content[key] = t.textOf(obj)
	}
	if reader, ok := t.store.(storeReader); ok {
		return content, t.agrees(reader, content)
	}
	return content, nil
}

func (t *storeTrial) listed() ([]any, error) {
	if t.config.Content != nil {
		return t.config.Content(t.store)
	}
	reader, ok := t.store.(interface{ List() []any })
	if !ok {
		return nil, errors.New("the store has no List, so config.Content must say what it holds")
	}
	return reader.List(), nil
}

// agrees compares the other reading methods with content.
func (t *storeTrial) agrees(reader storeReader, content map[string]string) error {
	keys, want := reader.ListKeys(), slices.Sorted(maps.Keys(content))
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		return fmt.Errorf("ListKeys says %q and List has %q", keys, want)
	}
	for key, text := range content {
		item, exists, err := reader.GetByKey(key)
		if err != nil || !exists || isNil(item) || t.textOf(item) != text {
			return fmt.Errorf("GetByKey(%q) = %v, %v, %v where List has %s", key, item, exists, err, text)
		}
		again, exists, err := reader.Get(item)
		if err != nil || !exists || isNil(again) || t.textOf(again) != text {
			return fmt.Errorf("Get of %q = %v, %v, %v where List has %s", key, again, exists, err, text)
		}
	}
	return nil
}

// holds checks that the store has exactly these objects, written as "a=1", sorted by key.
func (t *storeTrial) holds(want ...string) error {
	content, err := t.content()
	if err != nil {
		return err
	}
	got := []string{}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		got = append(got, content[key])
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the store holds %q, not %q", got, want)
	}
	return nil
}

// after is holds with a description of the preceding writes.
func (t *storeTrial) after(what string, want ...string) error {
	if err := t.holds(want...); err != nil {
		return fmt.Errorf("after %s: %w", what, err)
	}
	return nil
}

// absent checks that nothing is stored under an object's key.
func (t *storeTrial) absent(text string) error {
	reader, ok := t.store.(storeReader)
	if !ok {
		return nil
	}
	obj := t.object(text)
	key := t.config.Key(obj)
	if item, exists, err := reader.GetByKey(key); err != nil || exists || item != nil {
		return fmt.Errorf("GetByKey(%q) = %v, %v, %v where there is nothing", key, item, exists, err)
	}
	if item, exists, err := reader.Get(obj); err != nil || exists || item != nil {
		return fmt.Errorf("Get of %q = %v, %v, %v where there is nothing", key, item, exists, err)
	}
	return nil
}
