package kubeapi

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// quoted is a JSON string of exactly size bytes.
func quoted(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }

func TestValuesComeOneByOneHoweverTheyAreSplit(t *testing.T) {
	stream := "{\"a\":1}{\"a\":2}\n\n [3] \"four\" "
	for name, source := range map[string]io.Reader{
		"whole":        strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
		"EOF together": iotest.DataErrReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			values := newValueReader(source)
			for range 4 {
				var v any
				require.NoError(t, values.decode(&v))
				values.recycle()
			}
			require.Equal(t, io.EOF, values.decode(new(any)))
		})
	}
}

// object is a JSON object of exactly size bytes. (A string would need a byte more: only
// what follows it tells the decoder that it is complete.)
func object(size int) string { return `{"s":` + quoted(size-6) + `}` }

func TestAValueMayBeAsLargeAsTheLimitAndNoByteLarger(t *testing.T) {
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"large reads": func(r io.Reader) io.Reader { return r },
		"small reads": iotest.HalfReader,
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 10_000
			fits := object(limit)
			values := newValueReader(wrap(strings.NewReader(fits + fits + object(limit+1))))
			values.limit = limit
			var v struct{ S string }
			require.NoError(t, values.decode(&v))
			require.Len(t, v.S, limit-8)
			values.recycle()
			require.NoError(t, values.decode(&v))
			require.ErrorIs(t, values.decode(&v), ErrTooLarge)
			require.ErrorIs(t, values.decode(&v), ErrTooLarge, "it stays so")
		})
	}
}

func TestBlanksWithoutEndAreTooLarge(t *testing.T) {
	values := newValueReader(blanks{})
	values.limit = 10_000
	require.ErrorIs(t, values.decode(new(any)), ErrTooLarge)
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestRecycleGivesUpALargeBufferAndLosesNothing(t *testing.T) {
	large := quoted(recycleBytes)
	values := newValueReader(strings.NewReader(large + `"a"` + large + `"b""c"`))
	var got []string
	for {
		var s string
		before := values.decoder
		if err := values.decode(&s); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		values.recycle()
		require.Equal(t, len(s) > 1, before != values.decoder, "only a large value costs the buffer")
		got = append(got, s[:1])
	}
	require.Equal(t, []string{"x", "a", "x", "b", "c"}, got)
}

func TestEndsOfAStreamAreToldApart(t *testing.T) {
	cut := errors.New("reset")
	for name, test := range map[string]struct {
		source io.Reader
		want   error
	}{
		"in good order":     {strings.NewReader("1 "), io.EOF},
		"inside a value":    {strings.NewReader(`1 {"a":`), io.ErrUnexpectedEOF},
		"cut between":       {io.MultiReader(strings.NewReader("1 "), iotest.ErrReader(cut)), cut},
		"cut inside":        {io.MultiReader(strings.NewReader(`1 {"a"`), iotest.ErrReader(cut)), cut},
		"cut, and says EOF": {io.MultiReader(strings.NewReader("1 "), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
		"nonsense":          {strings.NewReader("1 <html>"), ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			values := newValueReader(test.source)
			require.NoError(t, values.decode(new(any)))
			require.ErrorIs(t, values.decode(new(any)), test.want)
		})
	}
}
