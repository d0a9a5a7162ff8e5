package sources

import (
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
)

// Expired returns the error for a version that a source has forgotten: 410 Expired. A reflector
// lists.
func Expired(requested, oldest uint64) error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("too old resource version: %d (%d)", requested, oldest))
}

// TooLarge returns the error for a version that a source has not reached: 504 Timeout with
// ResourceVersionTooLarge. A reflector lists at "".
func TooLarge(requested, version uint64) error {
	err := apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", requested, version), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// Disconnected returns the error for a request without a connection. A reflector watches again,
// however often that fails, and does not list.
func Disconnected(err error) error { return disconnected{err} }

type disconnected struct{ error }

func (e disconnected) Unwrap() error { return e.error }

// FailureCause returns the cause for cache.CauseOf.
func (disconnected) FailureCause() string { return string(cache.CauseConnectionRefused) }

// refuseStreaming refuses a streaming list, so that a reflector lists.
func refuseStreaming(options metav1.ListOptions) error {
	if !ptr.Deref(options.SendInitialEvents, false) {
		return nil
	}
	return apierrors.NewInvalid(
		schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"},
		"",
		field.ErrorList{
			field.Forbidden(
				field.NewPath("sendInitialEvents"), "this source does not stream lists"),
		},
	)
}

// parseVersion parses the version of a request: 0 for "" and "0".
func parseVersion(options metav1.ListOptions) (version uint64, err error) {
	if options.ResourceVersion == "" {
		return 0, nil
	}
	version, err = strconv.ParseUint(options.ResourceVersion, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(
			fmt.Sprintf("resourceVersion: not a decimal number: %q", options.ResourceVersion))
	}
	return version, nil
}

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }

// collect returns all items of items as one list.
func collect(
	items func(take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error),
) (runtime.Object, error) {
	list := &metav1.List{
		TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"},
		Items:    []runtime.RawExtension{},
	}
	listMeta, err := items(func(_ metav1.ListMeta, item runtime.Object) error {
		list.Items = append(list.Items, runtime.RawExtension{Object: item})
		return nil
	})
	if err != nil {
		return nil, err
	}
	list.ListMeta = listMeta
	return list, nil
}

// isNil returns whether an object is nil or a nil pointer.
func isNil(obj Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
