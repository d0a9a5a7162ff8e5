package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	numbers "k8s.io/apimachinery/pkg/util/json"
)

// List is ListWithContext with a context that never ends.
func (lw *ListerWatcher) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// ListWithContext makes one list request and answers a *unstructured.UnstructuredList
// with the list's own metadata (version, continue token, count of remaining items)
// and never-nil Items. It blocks until the whole body is there, fails soon after
// the context ends, and keeps nothing of what it returns. The package documentation
// says what the errors are; with an error there is no list, not even a part of it.
func (lw *ListerWatcher) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	answer, err := lw.send(ctx, verbList, options)
	if err != nil {
		return nil, err
	}
	defer answer.release()

	list, err := decodeList(answer.Body)
	if err != nil {
		if _, ok := errors.AsType[*apierrors.StatusError](err); ok {
			return nil, err
		}
		return nil, lw.failed(ctx, verbList, err)
	}
	return list, nil
}

// decodeList reads one list, item by item, and the stream to its end.
func decodeList(body io.Reader) (*unstructured.UnstructuredList, error) {
	values := newValueReader(body)
	list, err := decodeListBody(values)
	if err == nil {
		err = decodeNothing(values)
	}
	if err == io.EOF {
		// Inside a list there is no good place for the stream to end.
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

func decodeListBody(values *valueReader) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{}, Items: []unstructured.Unstructured{}}
	hasItems := false

	start, err := values.token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, fmt.Errorf("%w: it is no JSON object", ErrNotList)
	}
	for values.more() {
		key, err := values.token()
		if err != nil {
			return nil, err
		}
		field, ok := key.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %v in place of a field name", ErrMalformed, key)
		case field == "items":
			hasItems = true
			list.Items, err = decodeItems(values)
		default:
			err = decodeField(values, list.Object, field)
		}
		if err != nil {
			return nil, err
		}
	}
	if _, err := values.token(); err != nil {
		return nil, err
	}
	if err := checkList(list, hasItems); err != nil {
		return nil, err
	}
	completeItems(list)
	return list, nil
}

// decodeField reads what stands beside the items: apiVersion, kind, metadata.
func decodeField(values *valueReader, object map[string]any, field string) error {
	var value any
	if err := values.decode(&value); err != nil {
		return err
	}
	if err := numbers.ConvertInterfaceNumbers(&value, 0); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMalformed, readable([]byte(field), maxExplanation), err)
	}
	object[field] = value
	if field == "kind" && value == "Table" {
		// Its rows may be as large as a list and none of them is wanted.
		return fmt.Errorf("%w: it is a Table, which holds what a screen shows and no objects", ErrNotList)
	}
	return nil
}

// decodeItems reads the array of items; null, which Go servers send for an empty
// list, is one without elements.
func decodeItems(values *valueReader) ([]unstructured.Unstructured, error) {
	items := []unstructured.Unstructured{}
	start, err := values.token()
	switch {
	case err != nil:
		return nil, err
	case start == nil:
		return items, nil
	case start != json.Delim('['):
		return nil, fmt.Errorf("%w: items is no array", ErrMalformed)
	}
	for values.more() {
		object, err := decodeObject(values)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", len(items), err)
		}
		items = append(items, unstructured.Unstructured{Object: object})
	}
	_, err = values.token()
	return items, err
}

func decodeObject(values *valueReader) (map[string]any, error) {
	var object map[string]any
	if err := values.decode(&object); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // EOF must not pass for the end of the stream once it is wrapped
		}
		return nil, err
	}
	if object == nil {
		return nil, fmt.Errorf("%w: null in place of an object", ErrMalformed)
	}
	if err := numbers.ConvertMapNumbers(object, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return object, nil
}

// decodeNothing reads to the end of the stream, which lets the connection be used
// again and finds out about a body that was cut or goes on after the list.
func decodeNothing(values *valueReader) error {
	_, err := values.token()
	switch {
	case err == io.EOF:
		return nil
	case err == nil:
		return fmt.Errorf("%w: the body goes on after the list", ErrMalformed)
	}
	return err
}

// checkList refuses what is valid JSON and no list. An empty list may lack its items,
// if its kind says that it is one.
func checkList(list *unstructured.UnstructuredList, hasItems bool) error {
	object := list.Object
	kind := list.GetKind()
	if status, failed := failedStatus(object); failed && !hasItems {
		// Some proxies answer a refusal with HTTP code 200.
		return &apierrors.StatusError{ErrStatus: status}
	}
	if !hasItems && !strings.HasSuffix(kind, "List") {
		return fmt.Errorf("%w: its kind is %q and it has no items", ErrNotList, kind)
	}
	if object["metadata"] == nil {
		return nil
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%w: metadata is no object", ErrMalformed)
	}
	// Accessors answer "" for a field of the wrong type, and a version of "" means
	// something: the mirror would start its watch from nowhere.
	for _, field := range []string{"resourceVersion", "continue"} {
		if _, ok := metadata[field].(string); !ok && metadata[field] != nil {
			return fmt.Errorf("%w: metadata.%s is no string", ErrMalformed, field)
		}
	}
	return nil
}

// completeItems gives items their apiVersion and kind, which API servers leave out
// because the list implies them. It runs last because a JSON object has no order: the
// list's own kind may come after its items.
func completeItems(list *unstructured.UnstructuredList) {
	apiVersion, kind := list.GetAPIVersion(), strings.TrimSuffix(list.GetKind(), "List")
	if kind == "" {
		return // a v1 List mixes kinds, and its items carry their own
	}
	for i := range list.Items {
		item := list.Items[i].Object
		if item["apiVersion"] == nil && item["kind"] == nil {
			item["apiVersion"], item["kind"] = apiVersion, kind
		}
	}
}
