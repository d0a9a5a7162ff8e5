package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// write makes changes, each written as "create a=1", "update a=2", "label a=x", or "delete a".
func (t *sourceTrial) write(changes ...string) error {
	for _, text := range changes {
		verb, what, _ := strings.Cut(text, " ")
		name, mark, _ := strings.Cut(what, "=")
		err := t.inTime("the backend's "+verb, func() error {
			switch verb {
			case "create":
				return t.Create(name, mark)
			case "update":
				return t.Update(name, mark)
			case "label":
				return t.Label(name, mark)
			}
			return t.Delete(name)
		})
		if err != nil {
			return fmt.Errorf("could not %s in the backend: %w", text, err)
		}
	}
	return nil
}

// seen has the checked fields of an object.
type seen struct {
	obj                      runtime.Object
	name, mark, version, uid string
}

func (s seen) String() string { return s.name + "=" + s.mark }

func (t *sourceTrial) see(obj runtime.Object) (seen, error) {
	if isNil(obj) {
		return seen{}, errors.New("the object is nil")
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return seen{}, fmt.Errorf("a %T has no metadata, so a reflector could not key it: %w", obj, err)
	}
	s := seen{
		obj: obj, name: accessor.GetName(), mark: t.config.Mark(obj),
		version: accessor.GetResourceVersion(), uid: string(accessor.GetUID()),
	}
	switch {
	case s.name == "":
		return s, fmt.Errorf("a %T has no name, so a reflector would report it and skip it", obj)
	case s.version == "":
		return s, fmt.Errorf("%s has no resource version, so a reflector would not know where to resume after it", s)
	}
	return s, nil
}

func isNil(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// listing is the result of a list.
type listing struct {
	version, token string
	items          []seen
}

// names returns the items as "a=1", sorted, since the order of a list does not matter.
func (l listing) names() []string {
	out := make([]string, 0, len(l.items))
	for _, item := range l.items {
		out = append(out, item.String())
	}
	slices.Sort(out)
	return out
}

func (l listing) holds(want ...string) error {
	if got := l.names(); !slices.Equal(got, want) {
		return fmt.Errorf("the list has %q, the backend %q: a reflector would make its store the former", got, want)
	}
	return nil
}

// list lists as a reflector would, and makes the checks that apply to every list.
func (t *sourceTrial) list(options metav1.ListOptions) (listing, error) {
	return t.listBy(func() (runtime.Object, error) { return t.Source.ListWithContext(t.ctx, options) })
}

func (t *sourceTrial) listBy(call func() (runtime.Object, error)) (listing, error) {
	var list runtime.Object
	err := t.inTime("List", func() (err error) {
		list, err = call()
		return err
	})
	if err != nil {
		return listing{}, fmt.Errorf("List: %w", err)
	}
	if isNil(list) {
		return listing{}, errors.New("List returned neither a list nor an error, so a reflector would have nothing to read")
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return listing{}, fmt.Errorf("List returned a %T, which has no metadata of a list: %w", list, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return listing{}, fmt.Errorf("the items of a %T cannot be extracted: %w", list, err)
	}
	return t.listingOf(accessor.GetResourceVersion(), accessor.GetContinue(), items)
}

func (t *sourceTrial) listingOf(version, token string, items []runtime.Object) (listing, error) {
	l := listing{version: version, token: token}
	if version == "" || version == "0" {
		return l, fmt.Errorf("the list's resource version is %q, so a reflector would not know where its watch begins", version)
	}
	names := map[string]bool{}
	for at, obj := range items {
		item, err := t.see(obj)
		if err != nil {
			return l, fmt.Errorf("item %d of the list: %w", at, err)
		}
		if names[item.name] {
			return l, fmt.Errorf("%s is in the list twice, so a reflector would keep one of two states by chance", item.name)
		}
		names[item.name] = true
		l.items = append(l.items, item)
	}
	return l, nil
}

// pages lists in pages of limit and returns them as one list. It calls between after the first page if there are more.
func (t *sourceTrial) pages(limit int64, between func() error) (whole listing, count int, err error) {
	options := metav1.ListOptions{Limit: limit}
	for {
		page, err := t.list(options)
		switch {
		case count > 0 && isExpired(err):
			return whole, count, fmt.Errorf("page %d: %w: a reflector would drop its pages and list again without a limit; "+
				"a source that cannot list the state of the first page again must ignore the limit", count+1, err)
		case err != nil:
			return whole, count, fmt.Errorf("page %d: %w", count+1, err)
		}
		if count++; count == 1 {
			whole.version = page.version
		}
		if page.version != whole.version {
			return whole, count, fmt.Errorf("page %d is of version %s, the first of %s: a reflector would miss what changed in between", count, page.version, whole.version)
		}
		whole.items = append(whole.items, page.items...)
		if page.token == "" {
			return whole, count, nil
		}
		if page.token == options.Continue || count > 1000 {
			return whole, count, fmt.Errorf("page %d leads to itself, so a reflector would list forever", count)
		}
		if count == 1 && between != nil {
			if err := between(); err != nil {
				return whole, count, err
			}
		}
		options.Continue = page.token
	}
}

// isExpired reports whether a reflector would list after this error.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// behind reports whether a version is lower than another. It is false if they cannot be compared.
func behind(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
