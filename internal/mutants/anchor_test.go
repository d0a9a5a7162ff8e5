package mutants

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shop is the package in which the tests of this file look for places.
const shop = `package shop

const limit = 10 * hour

type basket struct{ sum, items int }

// add adds an item.
func (b *basket) add(price int, done chan bool) {
	if price > 0 && b.items < limit {
		b.sum += price
		b.items++
	}
	select {
	case <-done:
		b.sum = 0
	}
}

func total(a, b int) int { return a + b + sumOf(a, b) + sumOf(a, b) }

func sumOf(all ...int) int { return len(all) }
`

// mutated returns the text of the files of a package after a mutation.
func mutated(t *testing.T, m Mutant, files map[string]string) (map[string]string, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	found := locate(root, []Mutant{m})[0]
	if found.err != nil {
		return nil, found.err
	}
	after := maps.Clone(files)
	after[found.path()] = string(found.change.text())
	return after, nil
}

// requireMutated requires that the mutant replaces a text in a file, and nothing else.
func requireMutated(t *testing.T, m Mutant, file, before, from, to, after string) {
	t.Helper()
	other := "package shop\n"
	files, err := mutated(t, m, map[string]string{file: before + from + after, "other.go": other})
	require.NoError(t, err)
	require.Equal(t, map[string]string{file: before + to + after, "other.go": other}, files)
}

func priceMutant() Mutant {
	return Mutant{Name: "allows-a-free-item", In: "basket.add", From: "price > 0", To: "price >= 0"}
}

func TestAMutantReplacesItsExpression(t *testing.T) {
	before := "package shop\n\nfunc (b *basket) add(price int) bool { return "
	after := " && b.free() }\n"
	requireMutated(t, priceMutant(), "shop.go", before, "price > 0", "(price >= 0)", after)
}

func TestAReformattedPlaceIsFound(t *testing.T) {
	m := priceMutant()
	m.From = "if price > 0 { b.sum += price; b.items++ }"
	m.To = "b.items++"
	from := "if price>0 {\n// why\nb.sum+=price // how\n\n\tb.items++\n}"
	before := "package shop\n\nfunc (b *basket) add(price int) {\n"
	requireMutated(t, m, "shop.go", before, from, "b.items++", "\n}\n")
}

func TestAFunctionThatMovedToAnotherFileIsFound(t *testing.T) {
	before := "package shop\n\nfunc (b *basket) add(price int) bool { return "
	requireMutated(t, priceMutant(), "moved.go", before, "price > 0", "(price >= 0)", "}\n")
}

// The expression is now in a helper, or its function has another name.
func TestTheOnlyPlaceInThePackageIsFoundAfterASplit(t *testing.T) {
	before := "package shop\n\nfunc (b *basket) add(price int) bool { return isPrice(price) }\n\n" +
		"func isPrice(price int) bool { return "
	requireMutated(t, priceMutant(), "shop.go", before, "price > 0", "(price >= 0)", " }\n")
}

func TestAMutantWithoutItsPlaceSaysWhatIsMissingAndWhatToDo(t *testing.T) {
	m := priceMutant()
	m.From = "price >\n\t7"
	_, err := mutated(t, m, map[string]string{"shop.go": shop})
	require.ErrorIs(t, err, ErrOutdated)
	require.ErrorIs(t, err, errNoPlace)
	assert.EqualError(t, err, "mutant allows-a-free-item does not apply: its code is not there: "+
		"neither basket.add nor another declaration of . has: price > 7; "+
		"set the mutant's In and From to where this code is now, or remove the mutant if the code "+
		"can no longer have its fault")
}

func TestAPlaceThatIsNotUniqueIsAnErrorUntilItIsNumbered(t *testing.T) {
	m := Mutant{Name: "counts-nothing", In: "total", From: "sumOf(a, b)", To: "0"}
	_, err := mutated(t, m, map[string]string{"shop.go": shop})
	require.ErrorIs(t, err, errSeveralPlaces)
	assert.ErrorContains(t, err, "total of . has 2 times (Nth is 0): sumOf(a, b); "+
		"give the mutant a longer From, or set Nth")

	m.Nth = 2
	files, err := mutated(t, m, map[string]string{"shop.go": shop})
	require.NoError(t, err)
	assert.Contains(t, files["shop.go"], "return a + b + sumOf(a, b) + 0 }")

	m.Nth = 3
	_, err = mutated(t, m, map[string]string{"shop.go": shop})
	assert.ErrorIs(t, err, errSeveralPlaces)
}

func TestSeveralPlacesOutsideOfTheDeclarationAreNamed(t *testing.T) {
	m := priceMutant()
	m.In = "basket.remove"
	m.From = "b"
	_, err := mutated(t, m, map[string]string{"shop.go": shop})
	require.ErrorIs(t, err, errSeveralPlaces)
	assert.ErrorContains(t, err, "not basket.remove of ., but basket.add, total have: b; "+
		"set the mutant's In to one of them, or give it a longer From")
}

func TestEachKindOfCodeIsReplaced(t *testing.T) {
	for _, c := range []struct {
		in, from, to, after string
	}{
		{"limit", "10 * hour", "hour", "const limit = hour\n"},
		{"basket.add", "b.items++", "", "\t\tb.sum += price\n\t\t\n"},
		{"basket.add", "b.sum += price\nb.items++", "b.sum++", "limit {\n\t\tb.sum++\n\t}"},
		{"basket.add", "case <-done:", "default:", "\tdefault:\n\t\tb.sum = 0\n"},
		{"basket.add", "case <-done:\nb.sum = 0", "", "\tselect {\n\t\n\t}"},
		{"total", "a + b", "a - b", "return (a - b) + sumOf"},
	} {
		m := Mutant{Name: "any", In: c.in, From: c.from, To: c.to}
		files, err := mutated(t, m, map[string]string{"shop.go": shop})
		require.NoError(t, err, c.from)
		assert.Contains(t, files["shop.go"], c.after, c.from)
	}
}

func TestOnlyEqualSyntaxIsFound(t *testing.T) {
	for _, c := range []struct {
		from  string
		found bool
	}{
		{"sumOf(a,b)", true},
		{"sumOf(\n\ta,\n\tb, // both\n)", true},
		{"sumOf(a, b...)", false},
		{"sumOf(b, a)", false},
		{"sumOf(a)", false},
	} {
		m := Mutant{Name: "any", In: "total", From: c.from, Nth: 1, To: "0"}
		_, err := mutated(t, m, map[string]string{"shop.go": shop})
		assert.Equal(t, c.found, err == nil, "%s: %v", c.from, err)
	}
}

func TestAFromThatIsNoCodeIsAnError(t *testing.T) {
	m := priceMutant()
	m.From = "if price > 0 {"
	_, err := mutated(t, m, map[string]string{"shop.go": shop})
	assert.ErrorIs(t, err, errNoPattern)
}
