package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/apiclient"
)

// FuzzWindow reads a stream through a window, in scripted steps, and compares its content with the
// stream. The bytes must come in order, each once, however many the source returns at a time. The
// window must never have more than the limit, and never fewer than were requested and exist.
//
// The first byte of the script is the initial size, the second the limit. Of each further byte, the
// lower two bits are the operation, the others its length n: Fill, Need, Consume, or the bytes that
// the source returns at a time. If n is above 40, the next byte b makes it 256 n + b.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{8, 16, 0, 17, 2, 3, 0, 21, 6, 33}, uint32(100), false)
	f.Add([]byte{1, 255, 0, 253, 0, 254, 1, 2, 253, 9, 3}, uint32(70_000), true)
	f.Add([]byte{255, 3, 0xfd, 0xff, 0xfe, 0x80, 3, 0, 0, 0}, uint32(300_000), false)
	f.Fuzz(func(t *testing.T, script []byte, size uint32, failing bool) {
		if len(script) < 2 || len(script) > 300 {
			return
		}
		stream := make([]byte, size%400_000)
		for i := range stream {
			stream[i] = byte(i*i>>8 ^ i)
		}
		source := &crumbs{rest: stream, end: io.EOF}
		if failing {
			source.end = errors.New("boom")
		}
		first, limit := int(script[0])*16, int(script[1])*int(script[1])*5
		w := &windowModel{T: t, Window: NewWindow(source, first, limit), source: source, stream: stream, limit: max(limit, first, 1)}
		w.need = limit
		w.run(script[2:])
	})
}

// crumbs is a source that returns that many bytes at a time. Its end comes with the last ones or
// after them.
type crumbs struct {
	rest  []byte
	piece int
	end   error
}

func (c *crumbs) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, c.end
	}
	n := copy(p, c.rest[:min(max(c.piece, 1), len(c.rest))])
	c.rest = c.rest[n:]
	if len(c.rest) == 0 && c.piece%2 == 1 {
		return n, c.end
	}
	return n, nil
}

// windowModel is a window and its expected content.
type windowModel struct {
	*testing.T
	*Window
	source *crumbs
	stream []byte
	// consumed counts bytes. limit bounds the unread bytes, need the requested ones.
	consumed, limit, need int
	failed                error
}

func (m *windowModel) run(script []byte) {
	for i := 0; i < len(script); i++ {
		b := script[i]
		n := int(b >> 2)
		if n > 40 && i+1 < len(script) { // two bytes
			i++
			n = (n-40)<<8 | int(script[i])
		}
		switch b & 3 {
		case 0:
			m.asked(m.unread()+1, m.Fill())
		case 1:
			m.asked(n, m.Need(n))
		case 2:
			n = min(n, m.unread())
			m.Consume(n)
			m.consumed += n
		case 3:
			m.source.piece = n
		}
		m.check()
	}
}

func (m *windowModel) unread() int { return len(m.Unread()) }

// asked checks the result of requesting n bytes.
func (m *windowModel) asked(n int, err error) {
	if m.unread() >= n {
		require.NoError(m, err)
		return
	}
	require.Error(m, err)
	if m.failed != nil {
		require.Equal(m, m.failed, err, "an error stays")
		return
	}
	m.failed = err
	var limit *LimitError
	if errors.As(err, &limit) {
		require.Greater(m, n, m.need)
		return
	}
	require.Equal(m, m.source.end, err)
	require.Empty(m, m.source.rest, "not all was read")
	require.Equal(m, len(m.stream), m.consumed+m.unread())
}

func (m *windowModel) check() {
	require.LessOrEqual(m, m.unread(), m.limit)
	require.True(m, bytes.Equal(m.stream[m.consumed:m.consumed+m.unread()], m.Unread()), "from %d on", m.consumed)
	require.Equal(m, len(m.stream)-len(m.source.rest), m.consumed+m.unread(), "bytes were lost")
}

// FuzzPrintable makes lines of arbitrary text: printable, and at most the given number of
// characters plus dots. A line that Printable returned is unchanged, and so is a text that already
// is a valid line.
func FuzzPrintable(f *testing.F) {
	f.Add([]byte("one line"), 20)
	f.Add([]byte("  two\r\n\tlines\x1b[31m \x00"), 9)
	f.Add([]byte("\xff\xfeü€\U0001F600\u202e"), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < 0 || limit > 10_000 {
			return
		}
		line := apiclient.Printable(data, limit)
		require.Equal(t, line, apiclient.Printable(string(data), limit))
		require.True(t, utf8.ValidString(line))
		count := utf8.RuneCountInString(line)
		require.LessOrEqual(t, count, limit+1)
		blank := true // no space at the beginning
		good := utf8.Valid(data) && !bytes.HasPrefix(data, []byte(" ")) && !bytes.HasSuffix(data, []byte(" ")) && !bytes.Contains(data, []byte("  "))
		for _, r := range string(data) {
			good = good && unicode.IsPrint(r)
		}
		for _, r := range line {
			require.True(t, unicode.IsPrint(r), "%q", line)
			require.False(t, blank && r == ' ', "%q", line)
			blank = r == ' '
		}
		require.Equal(t, line, apiclient.Printable(line, count))
		if good && utf8.RuneCount(data) <= limit {
			require.Equal(t, string(data), line)
		}
	})
}
