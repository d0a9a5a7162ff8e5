package protowire

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// tree contains itself, like the schemas in a CustomResourceDefinition, in each way in which a
// generated type can. Its Unmarshal reads like generated code, with the same carelessness for maps.
type tree struct {
	metav1.PartialObjectMetadata `protobuf:"bytes,1,opt,name=metadata"`

	Title      string            `protobuf:"bytes,2,opt,name=title"`
	Not        *tree             `protobuf:"bytes,3,opt,name=not"`
	AllOf      []tree            `protobuf:"bytes,4,rep,name=allOf"`
	Properties map[string]tree   `protobuf:"bytes,5,rep,name=properties"`
	Labels     map[string]string `protobuf:"bytes,6,rep,name=labels"`
	Size       int64             `protobuf:"varint,7,opt,name=size"`
	Untagged   *tree

	calls *int
}

var errTree = errors.New("no tree")

func (s *tree) Unmarshal(data []byte) error {
	if s.calls != nil {
		*s.calls++
	}
	var frame [900]byte // about the stack that generated code of such a type uses
	frame[len(data)%len(frame)]++
	if frame[0] > 1 {
		return errTree
	}
	at := 0
	readable := true
	next := func() uint64 {
		value, n := varint(data[at:])
		at, readable = at+max(n, 0), readable && n > 0
		return value
	}
	for at < len(data) {
		field := next()
		if !readable {
			return errTree
		}
		if field&7 == typeVarint {
			next()
			continue
		}
		length := int(next())
		end := at + length
		if length < 0 || length > len(data) || end > len(data) {
			return errTree
		}
		inner := &tree{calls: s.calls}
		switch field >> 3 {
		case 3, 4:
			if err := inner.Unmarshal(data[at:end]); err != nil {
				return err
			}
		case 5:
			for at < end {
				number := next() >> 3
				length := int(next())
				if length < 0 || length > len(data) || at+length > len(data) || !readable {
					return errTree
				}
				if number == 2 {
					if err := inner.Unmarshal(data[at : at+length]); err != nil {
						return err
					}
				}
				at += length
			}
		}
		at = end
	}
	return nil
}

func TestOnlyTypesThatContainThemselvesAreLookedInto(t *testing.T) {
	for _, object := range []any{&carp.Carp{}, &metav1.PartialObjectMetadata{}, &metav1.Status{}, &custom{}, new(int)} {
		require.Nil(t, recursiveFieldsOf(reflect.TypeOf(object)), "%T", object)
	}
	s := recursiveFieldsOf(reflect.TypeFor[*tree]())
	require.NotNil(t, s)
	require.Same(t, s, s.messages[3])
	require.Same(t, s, s.messages[4])
	require.Same(t, s, s.mapEntries[5])
	require.Len(t, s.messages, 2, "metadata is not looked into")
	require.Len(t, s.mapEntries, 1)
	require.Same(t, s, recursiveFieldsOf(reflect.TypeFor[*tree]()), "kept")
}

// nested wraps a tree in that many others, by each of the fields in turn.
func nested(levels int, fields ...int) []byte {
	data := textField(2, "innermost")
	for i := range levels {
		field := fields[i%len(fields)]
		if field == 5 {
			data = join(textField(entryKey, "key"), bytesField(entryValue, data))
		}
		data = join(textField(2, "title"), varintField(7, 1), bytesField(field, data))
	}
	return data
}

func TestObjectsUpToTheNestingLimitPass(t *testing.T) {
	limits := roomy
	limits.Nesting = 10
	for _, fields := range [][]int{{3}, {4}, {5}, {3, 4, 5}} {
		require.NoError(t, Encoding.Into(nested(9, fields...), limits, &tree{}))
		require.NoError(t, Encoding.Into(sealed(raw(nested(9, fields...))), limits, &tree{}))
		want := &wire.LimitError{What: wire.LimitNesting, Limit: 10}
		require.Equal(t, want, Encoding.Into(nested(10, fields...), limits, &tree{}))
		require.Equal(t, want, Encoding.Into(sealed(raw(nested(10, fields...))), limits, &tree{}))
	}
	limits.Nesting = 1
	require.NoError(t, Encoding.Into(carpBytes(t), limits, &carp.Carp{}), "its types bound the depth")
}

func carpBytes(t *testing.T) []byte {
	data, err := carps(1).Items[0].Marshal()
	require.NoError(t, err)
	return data
}

// A stack of 1 GB would end the test program.
func TestTheDeepestNestingThatFitsIntoAnItemIsRefused(t *testing.T) {
	const size = 16 << 20
	data := make([]byte, 0, size)
	// Lengths of four bytes that reach to the very end. The last few are broken.
	for len(data) < size-8 {
		length := size - len(data) - 5
		data = append(data, 3<<3|typeBytes, byte(length)|0x80, byte(length>>7)|0x80, byte(length>>14)|0x80, byte(length>>21))
	}
	data = data[:size]
	limits := wire.Limits{ValueBytes: size, Nesting: 1000, TokenBytes: 1}
	require.Equal(t, &wire.LimitError{What: wire.LimitNesting, Limit: 1000}, Encoding.Into(data, limits, &tree{}))
}

func TestEntriesOfMapsThatReachOutOfThemselvesAreRefused(t *testing.T) {
	// Each level is an entry of four bytes and, within it, a value that reaches to the end. With
	// each level, Unmarshal would read the rest twice.
	overlapping := func(valueTag []byte) []byte {
		var data []byte
		for range 12 {
			data = join(tagBytes(5, typeBytes), number(uint64(len(valueTag)+1)), valueTag, number(uint64(len(data))), data)
		}
		return data
	}
	for name, data := range map[string][]byte{
		"a value that reaches out":      overlapping(tagBytes(entryValue, typeBytes)),
		"which pretends to be a number": overlapping(tagBytes(entryValue, typeVarint)),
		"a key that pretends it":        bytesField(5, join(varintField(entryKey, 3), bytesField(entryValue, nil))),
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			require.ErrorIs(t, Encoding.Into(data, roomy, &tree{calls: &calls}), wire.ErrMalformed)
			require.Zero(t, calls, "Unmarshal never sees it")
			if err := (&tree{calls: &calls}).Unmarshal(data); err == nil {
				t.Logf("by itself Unmarshal would have needed %d calls", calls)
			}
		})
	}
}
