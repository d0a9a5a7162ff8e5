package cachetest

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/sharding"
)

// selection decides which objects a request selects. It is immutable and used without the source's
// lock.
type selection struct {
	namespace  string
	labels     labels.Selector
	fields     fields.Selector
	fieldValue func(obj runtime.Object, path string) (string, bool)
	// shard is the shardSelector, empty if it selects everything; ranges are its ranges.
	shard  string
	ranges sharding.Ranges
}

// newSelection parses the selectors of a request. Like an API server it refuses an unsupported
// field path.
func (s *Source) newSelection(namespace string, opts metav1.ListOptions) (selection, error) {
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(
			fmt.Sprintf("labelSelector: unable to parse: %v", err))
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(
			fmt.Sprintf("fieldSelector: unable to parse: %v", err))
	}
	sel := selection{
		namespace:  namespace,
		labels:     byLabel,
		fields:     byField,
		fieldValue: s.options.FieldValue,
	}
	if opts.ShardSelector != "" && s.options.ShardSelectors {
		if sel.ranges, err = sharding.Parse(opts.ShardSelector); err != nil {
			return selection{}, apierrors.NewBadRequest(
				fmt.Sprintf("shardSelector: unable to parse: %v", err))
		}
		sel.shard = opts.ShardSelector
	}
	if example := s.example(); example != nil {
		for _, requirement := range byField.Requirements() {
			if _, ok := sel.field(example, requirement.Field); !ok {
				return selection{}, apierrors.NewBadRequest(
					fmt.Sprintf("fieldSelector: field label not supported: %s", requirement.Field))
			}
		}
	}
	return sel, nil
}

// byContent reports whether the request selects by more than the namespace.
func (sel selection) byContent() bool {
	return !sel.labels.Empty() || !sel.fields.Empty() || sel.shard != ""
}

func (sel selection) matches(obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	accessor := metaOf(obj)
	if sel.namespace != "" && accessor.GetNamespace() != sel.namespace {
		return false
	}
	if !sel.byContent() {
		return true
	}
	if sel.shard != "" && !sel.ranges.Includes(accessor) {
		return false
	}
	return sel.labels.Matches(labels.Set(accessor.GetLabels())) &&
		sel.fields.Matches(fieldsOf{sel, obj})
}

// setShardInfo sets the shard selector in the metadata of a list.
func (sel selection) setShardInfo(list runtime.Object) {
	switch l := list.(type) {
	case metav1.ShardedListInterface:
		l.SetShardInfo(&metav1.ShardInfo{Selector: sel.ranges.String()})
	case *unstructured.UnstructuredList:
		ranges := sel.ranges.String()
		// It cannot fail: the metadata is a map.
		_ = unstructured.SetNestedField(l.Object, ranges, "metadata", "shardInfo", "selector")
	}
}

// field returns the value at a field selector's path.
func (sel selection) field(obj runtime.Object, path string) (string, bool) {
	if sel.fieldValue != nil {
		if value, ok := sel.fieldValue(obj, path); ok {
			return value, true
		}
	}
	switch path {
	case "metadata.name":
		return metaOf(obj).GetName(), true
	case "metadata.namespace":
		return metaOf(obj).GetNamespace(), true
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return "", false
	}
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
	if err != nil || !found || value == nil {
		// An absent field equals the empty string, as on an API server.
		return "", true
	}
	return fmt.Sprint(value), true
}

// fieldsOf implements fields.Fields for an object.
type fieldsOf struct {
	selection selection
	object    runtime.Object
}

// Has implements fields.Fields.
func (f fieldsOf) Has(path string) bool {
	_, ok := f.selection.field(f.object, path)
	return ok
}

// Get implements fields.Fields.
func (f fieldsOf) Get(path string) string {
	value, _ := f.selection.field(f.object, path)
	return value
}

// translate returns the event that a watch with this selection gets for a change. An object that
// enters the selection is Added; one that leaves it is Deleted, with its last selected state and
// the version of the change. False means no event.
func (sel selection) translate(c change) (watch.Event, bool) {
	if c.hidden {
		return watch.Event{}, false
	}
	before := sel.matches(c.previous)
	now := sel.matches(c.current)
	switch {
	case now && before:
		return watch.Event{Type: watch.Modified, Object: c.current.DeepCopyObject()}, true
	case now:
		return watch.Event{Type: watch.Added, Object: c.current.DeepCopyObject()}, true
	case before:
		return watch.Event{Type: watch.Deleted, Object: copyAt(c.previous, c.version)}, true
	}
	return watch.Event{}, false
}
