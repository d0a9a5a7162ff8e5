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

// FuzzWindow looks at a stream through a window, in steps that a script says, and compares
// what it shows with the bytes of the stream: they come in order, each once, however many
// the source gives at a time; there are never more than the limit, nor fewer than were
// asked for and are there.
//
// The first byte of the script is the size to begin with, the second one the limit. Then
// of each byte the lower two bits are the operation and the others its length: Fill, Need,
// Consume, or how much the source gives at a time. A length beyond 40 has a second byte:
// so many times 256, and that.
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

// crumbs is a source that gives so many bytes at a time; its end comes with the last ones
// or after them.
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

// windowModel is a window and what it has to show.
type windowModel struct {
	*testing.T
	*Window
	source *crumbs
	stream []byte
	// consumed counts bytes. limit is how many may be unread, need how many
	// may be asked for.
	consumed, limit, need int
	failed                error
}

func (m *windowModel) run(script []byte) {
	for i := 0; i < len(script); i++ {
		b := script[i]
		n := int(b >> 2)
		if n > 40 && i+1 < len(script) { // far
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

// asked checks the outcome of asking for n bytes.
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

// FuzzPrintable makes lines of anything: printable, of so many characters and dots, the
// same again of what is one already, and of a text that is a good line nothing else.
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
		blank := true // none at the beginning
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
