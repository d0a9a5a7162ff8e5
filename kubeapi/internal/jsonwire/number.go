package jsonwire

import (
	"fmt"
	"strconv"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// maxInt64Digits is the number of digits that always fit into an int64.
const maxInt64Digits = 18

// number parses a number: an int64 if it has no fraction or exponent and fits, else a float64, else
// an error.
func (p *parser) number() (any, error) {
	start := p.at
	at := p.at
	negative := at < len(p.data) && p.data[at] == '-'
	if negative {
		at++
	}
	first := at
	var integer int64
	for at < len(p.data) && isDigit(p.data[at]) {
		integer = integer*10 + int64(p.data[at]-'0') // wraps around if there are too many digits
		at++
	}
	if at == first || p.data[first] == '0' && at > first+1 {
		return nil, p.unexpected("a value")
	}
	digits := at - first
	isInteger := true
	if at < len(p.data) && (p.data[at] == '.' || p.data[at]|0x20 == 'e') {
		isInteger = false
		p.at = at
		if !p.fraction() {
			return nil, p.unexpected("a digit")
		}
		at = p.at
	}
	p.at = at
	if isInteger && digits <= maxInt64Digits {
		if negative {
			integer = -integer
		}
		return integer, nil
	}
	return p.longNumber(p.data[start:at], isInteger)
}

// fraction moves past a fraction, an exponent or both. It returns false if a digit is missing.
func (p *parser) fraction() bool {
	if p.data[p.at] == '.' {
		p.at++
		if !p.digits() {
			return false
		}
	}
	if p.at == len(p.data) || p.data[p.at]|0x20 != 'e' {
		return true
	}
	p.at++
	if p.at < len(p.data) && (p.data[p.at] == '+' || p.data[p.at] == '-') {
		p.at++
	}
	return p.digits()
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.data) && isDigit(p.data[p.at]) {
		p.at++
	}
	return p.at > start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (p *parser) longNumber(literal []byte, isInteger bool) (any, error) {
	if isInteger {
		if integer, err := strconv.ParseInt(string(literal), 10, 64); err == nil {
			return integer, nil
		}
	}
	float, err := strconv.ParseFloat(string(literal), 64)
	if err != nil {
		printable := apiclient.Printable(literal, 32)
		return nil, fmt.Errorf("%w: the number %s is too large", wire.ErrMalformed, printable)
	}
	return float, nil
}
