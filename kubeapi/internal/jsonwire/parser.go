package jsonwire

import (
	"fmt"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// maxNesting bounds the nesting regardless of the limits, as encoding/json does. It protects the
// stacks of the parser and of recursive callers.
const maxNesting = 10_000

// parser decodes JSON into the Go values that apimachinery would make, in one pass. It collects
// fields and elements on stacks, so that each map and slice is made once with its final size.
type parser struct {
	data    []byte
	at      int
	depth   int
	nesting int

	fields   []field
	elements []any
	unquoted []byte // buffer for strings with escapes

	names, values internTable
}

type field struct {
	name  string
	value any
}

// parsers pools parsers: they are large, and their interned strings become more useful over time.
// The pool has about as many as decode concurrently.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// Parsers with larger stacks are not pooled: they come from an unusually large object or an attack.
const (
	maxPooledValues = 4096
	maxPooledBytes  = 64 << 10
)

// parse parses all of data. It keeps no reference to data.
func parse(data []byte, nesting int) (any, error) {
	p := parsers.Get().(*parser)
	value, err := p.parse(data, nesting)
	if p.isPoolable() {
		parsers.Put(p)
	}
	return value, err
}

// isPoolable reports whether the parser is small enough to be pooled.
func (p *parser) isPoolable() bool {
	return cap(p.fields) <= maxPooledValues &&
		cap(p.elements) <= maxPooledValues &&
		cap(p.unquoted) <= maxPooledBytes
}

func (p *parser) parse(data []byte, nesting int) (any, error) {
	p.data = data
	p.at = 0
	p.depth = 0
	p.nesting = min(nesting, maxNesting)
	value, err := p.document()
	p.data = nil
	if err != nil {
		// Drop the values left on the stacks, so that the pool does not keep them alive.
		clear(p.fields)
		clear(p.elements)
		p.fields = p.fields[:0]
		p.elements = p.elements[:0]
		return nil, err
	}
	return value, nil
}

func (p *parser) document() (any, error) {
	value, err := p.value(p.token())
	if err != nil {
		return nil, err
	}
	if p.token(); p.at < len(p.data) {
		return nil, p.unexpected("the end")
	}
	return value, nil
}

// token skips blanks and returns the next byte without consuming it, or 0 at the end.
func (p *parser) token() byte {
	for p.at < len(p.data) {
		c := p.data[p.at]
		if c > ' ' || !isBlank(c) {
			return c
		}
		p.at++
	}
	return 0
}

// value parses the value that begins here with the byte first.
func (p *parser) value(first byte) (any, error) {
	switch first {
	case '"':
		return p.stringValue()
	case '{':
		return p.object()
	case '[':
		return p.array()
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	}
	return p.number()
}

func (p *parser) literal(word string) error {
	if end := p.at + len(word); end <= len(p.data) && string(p.data[p.at:end]) == word {
		p.at = end
		return nil
	}
	return p.unexpected("a value")
}

func (p *parser) object() (map[string]any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	base := len(p.fields)
	token := p.token()
	for token != '}' {
		if len(p.fields) > base {
			if token != ',' {
				return nil, p.unexpected("a comma or the end of the object")
			}
			p.at++
			token = p.token()
		}
		if token != '"' {
			return nil, p.unexpected("the name of a field")
		}
		name, err := p.fieldName()
		if err != nil {
			return nil, err
		}
		if p.token() != ':' {
			return nil, p.unexpected("a colon")
		}
		p.at++
		value, err := p.value(p.token())
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, field{name, value})
		token = p.token()
	}
	p.leave()

	fields := p.fields[base:]
	if len(fields) == 0 {
		return make(map[string]any), nil
	}
	object := newMap(len(fields))
	for _, f := range fields { // the last of duplicate fields counts
		object[f.name] = f.value
	}
	clear(fields)
	p.fields = p.fields[:base]
	return object, nil
}

// smallMapSize is the number of fields that every Go map holds without growing.
const smallMapSize = 8

// newMap makes a map for so many fields. Most maps are small, and making those without a size is
// measurably faster.
func newMap(fields int) map[string]any {
	if fields <= smallMapSize {
		return make(map[string]any)
	}
	return make(map[string]any, fields)
}

func (p *parser) array() ([]any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	base := len(p.elements)
	token := p.token()
	for token != ']' {
		if len(p.elements) > base {
			if token != ',' {
				return nil, p.unexpected("a comma or the end of the array")
			}
			p.at++
			token = p.token()
		}
		value, err := p.value(token)
		if err != nil {
			return nil, err
		}
		p.elements = append(p.elements, value)
		token = p.token()
	}
	p.leave()

	elements := p.elements[base:]
	array := make([]any, len(elements))
	copy(array, elements)
	clear(elements)
	p.elements = p.elements[:base]
	return array, nil
}

// enter moves past an opening bracket, leave past a closing one.
func (p *parser) enter() error {
	p.at++
	p.depth++
	if p.depth > p.nesting {
		return &wire.LimitError{What: wire.LimitNesting, Limit: p.nesting}
	}
	return nil
}

func (p *parser) leave() {
	p.at++
	p.depth--
}

// unexpected returns the error for the byte at the parser's position.
func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.data) {
		return fmt.Errorf("%w: unexpected end, expected %s", wire.ErrMalformed, wanted)
	}
	got := formatByte(p.data[p.at])
	return fmt.Errorf("%w: got %s at offset %d, expected %s", wire.ErrMalformed, got, p.at, wanted)
}
