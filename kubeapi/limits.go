package kubeapi

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Limits bound how much of a server's response this package reads and holds. Zero fields have
// defaults.
type Limits struct {
	// ItemBytes bounds one item of a list, one frame of a watch, and everything else that is read
	// at once, in bytes as sent. Default: 16 MiB, the limit of apimachinery's stream decoder.
	ItemBytes int

	// DecodedBytes bounds the estimated memory to decode one object: 512 bytes for each value, more
	// for large structs, and twice the bytes as sent. Many small values take some hundred times
	// their bytes. A larger object is quarantined. Default: 192 MiB, enough for 390,000 values
	// without a Go type.
	DecodedBytes int

	// Nesting bounds the depth of objects and arrays; the object itself is level 1. A deeper object
	// is quarantined. Default: 1,000; at most 10,000.
	Nesting int

	// TokenBytes bounds the continue token of a list. Default: 64 KiB.
	TokenBytes int

	// ErrorBytes bounds how much of an error response's body is read. Default: 64 KiB.
	ErrorBytes int

	// Objects bounds the objects of one list over all its pages, and the initial events of a
	// streaming list. Default: no limit.
	Objects int
}

// maxNameless bounds the objects without a name in one list or watch. Each is reported, and none
// can be stored.
const maxNameless = 64

// countNameless returns an error when there are more than maxNameless.
func countNameless(count *int, object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil || accessor.GetName() != "" {
		return nil
	}
	*count++
	if *count > maxNameless {
		return fmt.Errorf("%w: more than %d objects without a name", ErrMalformed, maxNameless)
	}
	return nil
}

const (
	defaultItemBytes    = 16 << 20
	defaultDecodedBytes = 192 << 20
	defaultNesting      = 1000
	defaultTokenBytes   = 64 << 10
	defaultErrorBytes   = 64 << 10

	maxNesting = 10_000
)

// withDefaults sets the defaults, or returns an error that names the invalid limit.
func (l Limits) withDefaults() (Limits, error) {
	for _, limit := range []struct {
		name         string
		value        *int
		defaultValue int
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
			*limit.value = limit.defaultValue
		}
	}
	if l.Nesting > maxNesting {
		return l, fmt.Errorf("the maximum of Nesting is %d, not %d", maxNesting, l.Nesting)
	}
	return l, nil
}

func (l Limits) wire() wire.Limits {
	return wire.Limits{
		ValueBytes: l.ItemBytes,
		Memory:     l.DecodedBytes,
		Nesting:    l.Nesting,
		TokenBytes: l.TokenBytes,
	}
}

// LimitError reports the exceeded limit. It wraps ErrTooLarge.
type LimitError struct {
	// Limit is the name of a field of Limits, Value its value.
	Limit string
	Value int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: more than %d in %s", ErrTooLarge, e.Value, e.Limit)
}

func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// FailureCause returns the cause that a reflector's status reports.
func (e *LimitError) FailureCause() string { return apiclient.CauseResponseTooLarge }

// objectCount counts the objects of a list over its pages, which are separate calls connected by a
// continue token.
type objectCount struct {
	mu sync.Mutex
	// before has, by a token's hash, the number of objects on the pages before it.
	before map[[sha256.Size]byte]int
}

// maxCountedTokens bounds the remembered tokens, usually one. When it is exceeded all are
// forgotten, and the next page counts from 0.
const maxCountedTokens = 16

// objectsBefore returns the number of objects before the page that a token requests.
func (lw *ListerWatcher) objectsBefore(token string) int {
	if lw.limits.Objects == 0 || token == "" {
		return 0
	}
	lw.objectCount.mu.Lock()
	defer lw.objectCount.mu.Unlock()
	return lw.objectCount.before[sha256.Sum256([]byte(token))]
}

// setObjectsBefore remembers the number of objects before the page that a token will request.
func (lw *ListerWatcher) setObjectsBefore(token string, objects int) {
	if lw.limits.Objects == 0 || token == "" {
		return
	}
	lw.objectCount.mu.Lock()
	defer lw.objectCount.mu.Unlock()
	if lw.objectCount.before == nil {
		lw.objectCount.before = map[[sha256.Size]byte]int{}
	}
	if len(lw.objectCount.before) >= maxCountedTokens {
		clear(lw.objectCount.before)
	}
	lw.objectCount.before[sha256.Sum256([]byte(token))] = objects
}
