package cache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Errors name the key, the version and the cause, never the object, and lead to
// their causes.
func TestErrorsNameTheKeyAndLeadToTheirCause(t *testing.T) {
	secret := labelled(pod("ns", "n"), "secret-content")
	errs := map[error]string{
		KeyError{secret, errBoom}: `"ns/n"`,
		&ObjectError{Key: "ns/n", ResourceVersion: "7", Stage: "index", Err: errBoom}: `"ns/n" at version 7`,
		&StoreError{Op: "Add", Name: "ns/n", Err: errBoom}:                            `Add of "ns/n"`,
		&ProcessError{Keys: []string{"ns/n"}, Changes: 12, Err: errBoom}:              `["ns/n"] and others, 12 changes`,
		&PanicError{Value: errBoom}:                                                   "panic: boom",
	}
	for err, want := range errs {
		assert.ErrorContains(t, err, want)
		assert.ErrorIs(t, err, errBoom)
		assert.NotContains(t, err.Error(), "secret-content")
	}
	assert.EqualError(t, &RegressionError{What: "event", Key: "a", Have: "9", Got: "8"},
		`resource version went backwards: event of "a" at 8, have 9`)
	assert.EqualError(t, &UnexpectedTypeError{Expected: "A", Actual: "B"}, "expected A, got B")
	assert.Contains(t, (&SlowSourceError{Op: "List", Waited: slowSource}).Error(), "List")
	assert.Nil(t, errors.Unwrap(&PanicError{Value: "no error"}))
	assert.Contains(t, (&PanicError{Value: 1, Stack: []byte("the stack")}).Error(), "the stack")
	for obj, want := range map[any]string{
		nil:                                "nil",
		(*object)(nil):                     "nil *v1.PartialObjectMetadata",
		pod("a", "b"):                      `*v1.PartialObjectMetadata "a/b"`,
		7:                                  "int",
		pod("", ""):                        "*v1.PartialObjectMetadata",
		DeletedFinalStateUnknown{Key: "k"}: `tombstone "k"`,
	} {
		assert.Equal(t, want, describe(obj))
	}
}

// An error that is kept holds no object: a KeyError is kept with the name.
func TestErrorsThatAreKeptHoldNoObject(t *testing.T) {
	secret := labelled(pod("a", "1"), "secret-content")
	for _, err := range []error{KeyError{secret, errBoom}, fmt.Errorf("adding: %w", KeyError{secret, errBoom})} {
		var kept KeyError
		require.ErrorAs(t, withoutObject(err), &kept)
		assert.Equal(t, ObjectName{Namespace: "a", Name: "1"}, kept.Obj)
		assert.ErrorIs(t, kept, errBoom)
		assert.Equal(t, kept, withoutObject(kept))
	}
	assert.Equal(t, KeyError{Err: errBoom}, withoutObject(KeyError{7, errBoom}))
	assert.Equal(t, errBoom, withoutObject(errBoom))
	assert.Contains(t, KeyError{ObjectName{Namespace: "a", Name: "1"}, errBoom}.Error(), `"a/1"`)
}

func TestOnlyNilAndNilPointersAreTakenForThose(t *testing.T) {
	var (
		list   []int
		keys   map[string]int
		call   func()
		stream chan int
	)
	for _, obj := range []any{nil, (*object)(nil), (**object)(nil)} {
		assert.True(t, isNilPointer(obj), "%T", obj)
	}
	for _, obj := range []any{
		&object{}, new(*object), struct{}{}, object{}, 0, "", list, keys, call, stream, map[string]int{}, [1]*object{}, struct{ *object }{},
	} {
		assert.False(t, isNilPointer(obj), "%T", obj)
	}
}
