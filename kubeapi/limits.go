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

// Limits bound how much of a server's response this package reads and holds. Zero fields have defaults.
type Limits struct {
	// ItemBytes bounds one item of a list, one frame of a watch, and everything else that is read at once, in bytes as
	// sent. Default: 16 MiB, the limit of apimachinery's stream decoder.
	ItemBytes int

	// DecodedBytes bounds the estimated memory to decode one object: 512 bytes for each value, more for large structs,
	// and twice the bytes as sent. Many small values take some hundred times their bytes. A larger object is
	// quarantined. Default: 192 MiB, enough for 390,000 values without a Go type.
	DecodedBytes int

	// Nesting bounds the depth of objects and arrays; the object itself is level 1. A deeper object is quarantined.
	// Default: 1,000; at most 10,000.
	Nesting int

	// TokenBytes bounds the continue token of a list. Default: 64 KiB.
	TokenBytes int

	// ErrorBytes bounds how much of an error response's body is read. Default: 64 KiB.
	ErrorBytes int

	// Objects bounds the objects of one list over all its pages, and the initial events of a streaming list. Default:
	// no limit.
	Objects int
}

// mostNameless bounds the objects without a name in one list or watch. Each is reported, and none can be stored.
const mostNameless = 64

// countNameless returns an error when there are more than mostNameless.
func countNameless(count *int, object runtime.Object) error {
	about, err := meta.Accessor(object)
	if err != nil || about.GetName() != "" {
		return nil
	}
	if *count++; *count > mostNameless {
		return fmt.Errorf("%w: more than %d objects without a name", ErrMalformed, mostNameless)
	}
	return nil
}

const (
	defaultItemBytes    = 16 << 20
	defaultDecodedBytes = 192 << 20
	defaultNesting      = 1000
	defaultTokenBytes   = 64 << 10
	defaultErrorBytes   = 64 << 10

	mostNesting = 10_000
)

// completed sets the defaults, or returns an error that names the invalid limit.
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

// objectCount counts the objects of a list over its pages. The pages are separate calls; only the continue token
// connects them.
type objectCount struct {
	mu sync.Mutex
	// before has, by a token's hash, the number of objects on the pages before it.
	before map[[sha256.Size]byte]int
}

// lists bounds the tokens that are remembered, usually one. Beyond it the count of a page may be lost, and starts at 0.
const lists = 16

// upTo returns the number of objects before the page that a token requests.
func (lw *ListerWatcher) upTo(token string) int {
	if lw.limits.Objects == 0 || token == "" {
		return 0
	}
	lw.count.mu.Lock()
	defer lw.count.mu.Unlock()
	return lw.count.before[sha256.Sum256([]byte(token))]
}

// counted remembers the number of objects before the page that a token will request.
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
