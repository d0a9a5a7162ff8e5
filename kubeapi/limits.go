package kubeapi

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Limits are what one answer of a server may make this package read and hold. A limit
// of 0 is its default.
type Limits struct {
	// ItemBytes bounds one item of a list, one frame of a watch, and all else that is
	// read as one piece, in bytes as they are sent. What is decoded of them is larger,
	// ordinary objects six times: DecodedBytes bounds that. Default: 16 MiB, the limit of
	// apimachinery's own stream decoder, and ten times what etcd stores by default
	// (1.5 MiB a request).
	ItemBytes int

	// DecodedBytes bounds the memory that an object of a list or a watch may take while it
	// is decoded, as estimated from its values before: many small ones (an array of empty
	// objects) take some hundred times the bytes that they are sent in. Charged are 512 bytes
	// for a value, more where a Go type has large structs, and twice the bytes as sent;
	// decoders take less, mostly a fraction of it. An object that is above is quarantined. Default:
	// 192 MiB, which with the buffers that an item is read into is below 256 MiB. It is
	// enough for 390,000 values without a Go type.
	DecodedBytes int

	// Nesting bounds how deep objects and arrays lie in one another; the object itself
	// is the first level. An object that is deeper is quarantined. Default: 1,000. It
	// may not be above 10,000, where apimachinery's decoders end: what they call calls
	// itself for each level, and there is no surviving the end of the stack.
	Nesting int

	// TokenBytes bounds the token that a list is continued with, which is sent back in
	// a URL. Default: 64 KiB.
	TokenBytes int

	// ErrorBytes is how much of a refusal's body is read. What is longer explains
	// nothing, and the HTTP code has to do. Default: 64 KiB; a Status has a few hundred
	// bytes, and only a long list of validation causes more.
	ErrorBytes int

	// Objects bounds the objects of one list, over all of its pages, and those that
	// come before the end of a streaming list. Default: no limit.
	Objects int
}

const (
	defaultItemBytes    = 16 << 20
	defaultDecodedBytes = 192 << 20
	defaultNesting      = 1000
	defaultTokenBytes   = 64 << 10
	defaultErrorBytes   = 64 << 10

	mostNesting = 10_000
)

// completed puts the defaults in, or says which limit is wrong.
func (l Limits) completed() (Limits, error) {
	for _, limit := range []struct {
		name     string
		value    *int
		fallback int
	}{
		{"ItemBytes", &l.ItemBytes, defaultItemBytes},
		{"DecodedBytes", &l.DecodedBytes, defaultDecodedBytes},
		{"Nesting", &l.Nesting, defaultNesting},
		{"TokenBytes", &l.TokenBytes, defaultTokenBytes},
		{"ErrorBytes", &l.ErrorBytes, defaultErrorBytes},
		{"Objects", &l.Objects, 0},
	} {
		if *limit.value < 0 {
			return l, fmt.Errorf("%s is negative (%d)", limit.name, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.fallback
		}
	}
	if l.Nesting > mostNesting {
		return l, fmt.Errorf("above %d in Nesting: %d", mostNesting, l.Nesting)
	}
	return l, nil
}

func (l Limits) wire() wire.Limits {
	return wire.Limits{ValueBytes: l.ItemBytes, Memory: l.DecodedBytes, Nesting: l.Nesting, TokenBytes: l.TokenBytes}
}

// LimitError says which of the Limits an answer passed. It is ErrTooLarge to errors.Is.
type LimitError struct {
	// Limit is the name of the field of Limits, Value what it was.
	Limit string
	Value int
}

// Error names limit and value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: more than %d in %s", ErrTooLarge, e.Value, e.Limit)
}

// Is makes the error an ErrTooLarge.
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// FailureCause is the kind of failure in a reflector's status.
func (e *LimitError) FailureCause() string { return wire.CauseResponseTooLarge }

// objectCount counts the objects of a list over its pages. The pages come in calls of
// their own, of which nothing but the token tells that they belong together.
type objectCount struct {
	mu sync.Mutex
	// before is how many objects the pages before a token had, by the token's hash.
	before map[[sha256.Size]byte]int
}

// lists is how many lists are counted at once. Usually it is one; of more, and of
// lists that were given up, the count of some page may be lost, and is 0 then.
const lists = 16

// upTo returns how many objects came before the page that a token asks for.
func (lw *ListerWatcher) upTo(token string) int {
	if lw.limits.Objects == 0 || token == "" {
		return 0
	}
	lw.count.mu.Lock()
	defer lw.count.mu.Unlock()
	return lw.count.before[sha256.Sum256([]byte(token))]
}

// counted remembers how many there were before the page that a token will ask for.
func (lw *ListerWatcher) counted(token string, objects int) {
	if lw.limits.Objects == 0 || token == "" {
		return
	}
	lw.count.mu.Lock()
	defer lw.count.mu.Unlock()
	if lw.count.before == nil {
		lw.count.before = map[[sha256.Size]byte]int{}
	}
	if len(lw.count.before) >= lists {
		clear(lw.count.before)
	}
	lw.count.before[sha256.Sum256([]byte(token))] = objects
}
