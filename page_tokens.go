// The continue tokens of a list. Would the list ever end?

package cache

import "fmt"

// emptyPages limits consecutive pages without an object. Sources that filter pages send some.
const emptyPages = 1000

// pageTokens finds lists that would never end, by their continue tokens. The zero value is ready.
type pageTokens struct {
	pages int
	// empty counts the consecutive last pages without an object.
	empty int
	// saved is the token of the last page whose number is a power of two: a cycle of tokens repeats
	// one of these.
	saved string
}

// check records a page with a number of items. It fails if the source repeats continue tokens or
// keeps sending empty pages.
func (p *pageTokens) check(token string, items int) error {
	p.pages++
	p.empty++
	if items > 0 {
		p.empty = 0
	}
	if token == p.saved {
		return fmt.Errorf("source repeated its continue token after page %d", p.pages)
	}
	if p.empty >= emptyPages {
		return fmt.Errorf("source sent %d pages in a row without an object, "+
			"each with another continue token", p.empty)
	}
	if isPowerOfTwo(p.pages) {
		p.saved = token
	}
	return nil
}

func isPowerOfTwo(n int) bool { return n&(n-1) == 0 }
