package wire

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Encoding encodes the protocol's objects in one format. Its methods may be called concurrently.
type Encoding interface {
	// List reads the body of a list, Watch that of a watch. Neither reads before the first Next.
	List(body io.Reader, limits Limits) List
	Watch(body io.Reader, limits Limits) Watch

	// Unstructured decodes an object into apimachinery's unstructured form: map[string]any, []any,
	// string, bool, nil, int64 if exact, else float64. An encoding that is not self-describing
	// returns ErrNotSelfDescribing.
	Unstructured(raw []byte, limits Limits) (map[string]any, error)

	// Into decodes an object into a Go value, which must be zero. On an error its content is
	// undefined.
	Into(raw []byte, limits Limits, object runtime.Object) error

	// Cut appends to dst an object with only the wanted fields, to be decoded in place of raw. It
	// keeps no reference to either. It appends at most three times the bytes of raw; on an error
	// the appended bytes are undefined. Fields that are kept whole are checked by the decoder,
	// dropped ones are not checked.
	Cut(dst, raw []byte, wanted *Fields, limits Limits) ([]byte, error)

	// Intact reports whether bytes that could not be decoded are a well-formed value of the
	// encoding, which a server may have meant. Other bytes were damaged in transit or come from a
	// broken encoder. It returns false if the bytes alone do not show it, or if finding out would
	// exceed the limits.
	Intact(raw []byte, limits Limits) bool

	// Identify reads as much as possible of the key and type of an object that could not be
	// decoded. It never fails: a field that cannot be read is empty.
	Identify(raw []byte) Identity
}

// List reads the body of one list response.
type List interface {
	// Next returns the next item. io.EOF means that the list is complete and the body was read to
	// its end.
	Next() ([]byte, error)

	// Header returns the header as far as it was read; after io.EOF it is complete. Some servers
	// send it before the items, others after them.
	Header() Header

	// HasItems reports whether the body has items so far, or says that it has none.
	HasItems() bool
}

// Watch reads the body of one watch response.
type Watch interface {
	// Next returns the next frame. io.EOF means that the body ended between two frames.
	Next() (Frame, error)

	// Begun reports whether a frame has been read in part. It is for the body's Read, which Next
	// calls.
	Begun() bool
}

// Frame is one event of a watch.
type Frame struct {
	Type   watch.EventType
	Object []byte
}

// Header has the type and metadata of a list.
type Header struct {
	metav1.TypeMeta
	metav1.ListMeta
}

// Identity is the type and key of an object, its UID and version.
type Identity struct {
	metav1.TypeMeta
	Namespace, Name string
	// NamespaceUnread means that the object has a namespace that could not be read: Namespace is
	// empty, and Name alone would be another object's key.
	NamespaceUnread bool
	UID             types.UID
	ResourceVersion string
}

// MaxName bounds the strings of an Identity in bytes, at four times the limit of API servers. A
// longer one counts as unreadable, because a part of it would name another object.
const MaxName = 1024

// Limits bound the memory that one response may use. All are positive, except that Memory may be 0.
type Limits struct {
	// ValueBytes is the size of a value: an item, a frame, any other field of a list.
	ValueBytes int
	// Memory bounds the estimated memory for decoding an object, in bytes: see CheckMemory. 0 means
	// no limit.
	Memory int
	// Nesting bounds the depth of objects and arrays; the object itself is level 1.
	Nesting int
	// TokenBytes is the size of a continue token.
	TokenBytes int
}
