package jsonwire

import (
	"fmt"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// deepest is how deep values may lie in one another whatever the limits say. It is what
// encoding/json allows, and keeps the parser's own recursion, and that of callers that
// walk its result, far from the end of the stack.
const deepest = 10_000

// parser makes the Go values that apimachinery makes of JSON, in one pass. Fields and elements are collected on stacks, so that
// each map or slice is made once, of the right size.
type parser struct {
	data    []byte
	at      int
	depth   int
	nesting int

	fields   []field
	elements []any
	unquoted []byte // where strings with escapes are put together

	names, texts interning
}

type field struct {
	name  string
	value any
}

// A parser is too large to be made for each object, and what it has interned is of more
// use the longer it lasts. In the pool there are about as many as decode at a time; a
// garbage collection or two take those that do not.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// Stacks that have grown beyond this belong to an object of unusual size, or to an
// attack on memory.
const (
	keptValues = 4096
	keptBytes  = 64 << 10
)

// parse makes a value of the whole of data. It keeps nothing of it.
func parse(data []byte, nesting int) (any, error) {
	p := parsers.Get().(*parser)
	value, err := p.parse(data, nesting)
	if p.isUsual() {
		parsers.Put(p)
	}
	return value, err
}

// isUsual says whether the parser has not grown too large to be kept.
func (p *parser) isUsual() bool {
	return cap(p.fields) <= keptValues && cap(p.elements) <= keptValues && cap(p.unquoted) <= keptBytes
}

func (p *parser) parse(data []byte, nesting int) (any, error) {
	p.data, p.at, p.depth, p.nesting = data, 0, 0, min(nesting, deepest)
	value, err := p.whole()
	p.data = nil
	if err != nil {
		// What was on the stacks belongs to nobody, and must not be kept by them.
		clear(p.fields)
		clear(p.elements)
		p.fields, p.elements = p.fields[:0], p.elements[:0]
		return nil, err
	}
	return value, nil
}

func (p *parser) whole() (any, error) {
	value, err := p.value(p.token())
	if err != nil {
		return nil, err
	}
	if p.token(); p.at < len(p.data) {
		return nil, p.unexpected("the end")
	}
	return value, nil
}

// token moves past blanks and returns the byte behind them without going past it; 0,
// which no token is, at the end.
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

// value parses the value that begins at the parser's place with the token first.
func (p *parser) value(first byte) (any, error) {
	switch first {
	case '"':
		return p.text()
	case '{':
		return p.object()
	case '[':
		return p.array()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.number()
}

func (p *parser) word(word string) error {
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
		name, err := p.name()
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
	for _, f := range fields { // of two of the same name the last one counts
		object[f.name] = f.value
	}
	clear(fields)
	p.fields = p.fields[:base]
	return object, nil
}

// groupOfMap is how many fields a Go map takes without growing, whatever it was made for.
const groupOfMap = 8

// newMap makes a map for so many fields. Most are small, and for these there is a way
// that is measurably shorter: to give no size.
func newMap(fields int) map[string]any {
	if fields <= groupOfMap {
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
	if p.depth++; p.depth > p.nesting {
		return &wire.LimitError{What: wire.LimitNesting, Limit: p.nesting}
	}
	return nil
}

func (p *parser) leave() {
	p.at++
	p.depth--
}

// unexpected is the error about what stands at the parser's place.
func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.data) {
		return fmt.Errorf("%w: it ends in place of %s", wire.ErrMalformed, wanted)
	}
	return fmt.Errorf("%w: %s at offset %d in place of %s", wire.ErrMalformed, character(p.data[p.at]), p.at, wanted)
}
