package numbered_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/internal/numbered"
)

func TestANameThatIsGivenAgainHasANumber(t *testing.T) {
	var names numbered.Names
	given := []string{names.Give("a"), names.Give("b"), names.Give("a"), names.Give("a")}
	assert.Equal(t, []string{"a", "b", "a#2", "a#3"}, given)
}
