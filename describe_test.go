package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
