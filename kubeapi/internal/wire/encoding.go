package wire

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Encoding is one way in which the protocol puts objects into bytes. Its methods may
// be called concurrently.
type Encoding interface {
	// List reads the body of a list, Watch that of a watch. Neither reads anything
	// before the first Next.
	List(body io.Reader, limits Limits) List
	Watch(body io.Reader, limits Limits) Watch

	// Unstructured decodes an object as apimachinery's unstructured converter wants
	// it: map[string]any, []any, string, bool, nil, int64 where that is exact, else
	// float64. An encoding that does not describe itself returns ErrNotSelfDescribing.
	Unstructured(raw []byte, limits Limits) (map[string]any, error)

	// Into decodes an object into a Go value, which is zero. On an error what is in it
	// is of no use.
	Into(raw []byte, limits Limits, object runtime.Object) error

	// Cut appends to dst the bytes of an object with those fields alone that are wanted,
	// to be decoded in place of raw. It keeps neither. It adds no more than three times the
	// bytes of raw; on an error what it has added is of no use. It finds the faults of
	// what it reads; those inside of a field that is wanted as a whole are left to the
	// decoder, and those inside of an unwanted one to nobody.
	Cut(dst, raw []byte, wanted *Fields, limits Limits) ([]byte, error)

	// Intact says of bytes that could not be decoded whether they are a value of the encoding
	// all the same, which somebody may have meant. Others were damaged on the way, or are of
	// a broken encoder. An encoding whose bytes alone do not say it returns false, and so does
	// one that would have to pass the limits to find out.
	Intact(raw []byte, limits Limits) bool

	// Identify reads what it can of whose object it is, of bytes that could not be
	// decoded. It never fails: what cannot be read is empty.
	Identify(raw []byte) Identity
}

// List is the body of one list response.
type List interface {
	// Next returns the next item. io.EOF means that the list is complete and the body
	// was read to its end.
	Next() ([]byte, error)

	// Header is what the list has said of itself so far; after io.EOF it is complete.
	// Some servers say it before the items, others after them.
	Header() Header
}

// Watch is the body of one watch response.
type Watch interface {
	// Next returns the next frame. io.EOF means that the body ended between two frames.
	Next() (Frame, error)

	// Begun says whether a part of a frame has been read, and its end has not. It is for
	// the body's Read, which Next calls.
	Begun() bool
}

// Frame is one event of a watch.
type Frame struct {
	Type   watch.EventType
	Object []byte
}

// Header is what a list says of itself.
type Header struct {
	metav1.TypeMeta
	metav1.ListMeta
}

// Identity is whose an object is.
type Identity struct {
	metav1.TypeMeta
	Namespace, Name string
	// NamespaceUnread says that it has a namespace which could not be read: Namespace is
	// empty, and Name alone would name something else.
	NamespaceUnread bool
	UID             types.UID
	ResourceVersion string
}

// MaxName is the size in bytes of the longest string that is read of an object's
// identity, four times what API servers allow. A longer one counts as unreadable: a part
// of it would name something else.
const MaxName = 1024

// Limits are what one response may make a reader hold. All are positive, if they do not say otherwise.
type Limits struct {
	// ValueBytes is the size of a value: an item, a frame, any other field of a list.
	ValueBytes int
	// Memory is what an object may take while it is decoded, in bytes, as it is charged for
	// before: see CheckMemory. Of the limits it alone may be 0, which is none.
	Memory int
	// Nesting is how deep objects and arrays may lie in one another, the object itself
	// being 1.
	Nesting int
	// TokenBytes is the size of a continue token.
	TokenBytes int
}
