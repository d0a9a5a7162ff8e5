package option_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/internal/option"
)

func TestOptionsMayBeLeftOut(t *testing.T) {
	assert.Equal(t, time.Duration(0), option.AtMostOne[time.Duration]("New", nil))
	assert.Equal(t, time.Second, option.AtMostOne("New", []time.Duration{time.Second}))
}

func TestSeveralOptionsAreRefused(t *testing.T) {
	assert.PanicsWithValue(t, "New: there are 2 time.Duration, at most one is used", func() {
		option.AtMostOne("New", []time.Duration{1, 2})
	})
}
