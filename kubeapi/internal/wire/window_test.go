package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// counting returns bytes in which each differs from those near it.
func counting(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	return data
}

func TestWindowShowsTheStreamHoweverItIsReadAndConsumed(t *testing.T) {
	data := counting(400_000)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"large reads":        func(r io.Reader) io.Reader { return r },
		"one byte at a time": iotest.OneByteReader,
		"halves":             iotest.HalfReader,
		"end with the data":  iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			// Two at once, because windows share buffers.
			windows := []*Window{
				NewWindow(wrap(bytes.NewReader(data)), 16, 100_000),
				NewWindow(wrap(bytes.NewReader(data)), 4096, 300_000),
			}
			consumed := make([]int, len(windows))
			sizes := []int{1, 10, 1000, 5000, 70_000, 100_000}
			for left := len(windows); left > 0; {
				at := random.IntN(len(windows))
				w := windows[at]
				if consumed[at] == len(data) {
					continue
				}
				err := w.Need(min(sizes[random.IntN(len(sizes))], len(data)-consumed[at]))
				require.NoError(t, err)
				unread := w.Unread()
				require.True(t, bytes.Equal(unread, data[consumed[at]:consumed[at]+len(unread)]))
				n := random.IntN(len(unread) + 1)
				if random.IntN(3) == 0 {
					n = len(unread)
				}
				w.Consume(n)
				if consumed[at] += n; consumed[at] == len(data) {
					require.Equal(t, io.EOF, w.Fill())
					require.Equal(t, io.EOF, w.Need(5))
					left--
				}
			}
		})
	}
}

func TestAWindowGrowsToItsLimitAndNoFurther(t *testing.T) {
	for _, limit := range []int{10, 1000, 5000, sharedBufferSize, sharedBufferSize + 1, 200_000} {
		for _, first := range []int{1, 64, 4096} {
			w := NewWindow(zeros{}, first, limit)
			require.NoError(t, w.Need(limit))
			require.LessOrEqual(t, len(w.buffer), max(limit, first))
			unread := len(w.Unread())
			require.Equal(t, &LimitError{What: LimitValue, Limit: limit}, w.Need(unread+1))
			require.Equal(t, &LimitError{What: LimitValue, Limit: limit}, w.Fill(), "it stays")
			require.NoError(t, w.Need(unread), "what is there is there")
			require.Len(t, w.Unread(), unread)
		}
	}
}

func TestFillReadsByteByByteUpToTheLimit(t *testing.T) {
	w := NewWindow(iotest.OneByteReader(zeros{}), 4, 100_000)
	for n := 1; n <= 100_000; n++ {
		require.NoError(t, w.Fill())
		require.Equal(t, n, len(w.Unread()))
	}
	require.ErrorAs(t, w.Fill(), new(*LimitError))
}

func TestALargeNeedAllocatesNothingInAdvance(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := NewWindow(strings.NewReader("ten bytes."), 512, 16<<20)
	require.Equal(t, io.EOF, w.Need(16<<20))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*sharedBufferSize))
	require.Equal(t, "ten bytes.", string(w.Unread()))
}

func TestAnEmptyWindowHoldsWhatItBeganWith(t *testing.T) {
	for _, size := range []int{300, sharedBufferSize, 1 << 20} {
		w := NewWindow(zeros{}, 256, 2<<20)
		require.NoError(t, w.Need(size))
		w.Consume(len(w.Unread()))
		require.Equal(t, 256, cap(w.buffer))
		require.Nil(t, w.sharedBuffer)
		require.NoError(t, w.Fill())
		require.LessOrEqual(t, cap(w.buffer), 256)
	}
}

func TestALargeBufferIsReleasedOnceThereIsLittleInIt(t *testing.T) {
	// Some bytes are always unread, as in a list that arrives faster than it is used.
	w := NewWindow(zeros{}, 256, 2<<20)
	require.NoError(t, w.Need(2<<20))
	for range 2 << 20 / 1000 {
		w.Consume(1000)
		require.NoError(t, w.Need(1001))
	}
	require.LessOrEqual(t, cap(w.buffer), sharedBufferSize)
}

func TestReadsAreNotTiny(t *testing.T) {
	for _, most := range []int{100, 5000, 1 << 30} {
		source := &asked{most: most}
		w := NewWindow(source, 4096, 1<<20)
		require.NoError(t, w.Need(10_000))
		source.least = 1 << 30
		for range 10_000 {
			require.NoError(t, w.Need(10_000))
			w.Consume(9999)
		}
		require.Greater(t, source.least, sharedBufferSize/2)
	}
}

// Otherwise the cost of a large value in small pieces grows with its square.
func TestManyUnreadRecordsAreNotMovedForFewRemoved(t *testing.T) {
	w := NewWindow(&asked{most: 100}, 4096, 1<<20)
	require.NoError(t, w.Need(20_000))
	w.Consume(15_000)
	first := &w.Unread()[4000]
	require.NoError(t, w.Need(10_000))
	require.NotSame(t, first, &w.Unread()[4000], "it was moved while there was less of it than was consumed")
	w.Consume(1000)
	first = &w.Unread()[0]
	require.NoError(t, w.Need(20_000))
	require.Same(t, first, &w.Unread()[0])
}

// asked records how much is requested, and returns no more than that much.
type asked struct{ least, most int }

func (a *asked) Read(p []byte) (int, error) {
	a.least = min(a.least, len(p))
	return min(len(p), a.most), nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBytesReadWithAnErrorAreReturnedFirst(t *testing.T) {
	reset := errors.New("connection reset")
	w := NewWindow(readerFunc(func(p []byte) (int, error) { return copy(p, "abc"), reset }), 16, 100)
	require.NoError(t, w.Need(3))
	require.Equal(t, "abc", string(w.Unread()))
	require.Equal(t, reset, w.Need(4))
	w.Consume(3)
	require.Equal(t, reset, w.Fill(), "it stays, and the source is not asked again")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestASourceWithoutProgressIsAnError(t *testing.T) {
	w := NewWindow(readerFunc(func([]byte) (int, error) { return 0, nil }), 16, 100)
	require.Equal(t, io.ErrNoProgress, w.Fill())
}

func TestAWindowReusesItsMemory(t *testing.T) {
	for name, consumed := range map[string]func(unread int) int{
		"always something unread": func(int) int { return 10_000 },
		"never anything left":     func(unread int) int { return unread },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWindow(&asked{most: 5000}, 4096, 1<<20)
			require.Zero(t, testing.AllocsPerRun(2000, func() {
				if err := w.Need(10_000); err != nil {
					panic(err)
				}
				w.Consume(consumed(len(w.Unread())))
			}))
		})
	}
}
