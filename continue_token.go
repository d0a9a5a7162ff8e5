package cache

import "fmt"

// emptyPages is how many pages in a row may have nothing but a token. API servers
// fill their pages; a source that filters what it has paged may send some without
// an object: with the usual 500 to a page, half a million objects that it filters out.
const emptyPages = 1000

// tokenChain notices that the continue tokens of a list have no end: a defect of the
// source that would otherwise be asked page after page without a pause, for ever. The
// zero value is for a list's first page.
type tokenChain struct {
	// pages counts the tokens that came, empty the last pages without objects.
	pages, empty int
	// kept is the token after the page with the highest power of two so far. Once
	// the chain has entered a circle, and the power is no less than its length, that
	// token comes again before the next power: this is Brent's way to find a circle
	// with the memory of one token.
	kept string
}

// follow takes the token that came with a page of so many items.
func (c *tokenChain) follow(token string, items int) error {
	c.pages++
	c.empty++
	if items > 0 {
		c.empty = 0
	}
	switch {
	case token == c.kept:
		return fmt.Errorf("source repeated its continue token after page %d", c.pages)
	case c.empty >= emptyPages:
		return fmt.Errorf("source sent %d pages in a row without an object, each with another continue token", c.empty)
	}
	if c.pages&(c.pages-1) == 0 {
		c.kept = token
	}
	return nil
}
