package statuspage

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func points(values ...float64) []point {
	var all []point
	for i, value := range values {
		all = append(all, point{time: time.Unix(int64(10*i), 0), value: value})
	}
	return all
}

func TestAPlotIsALineFromTheOldestPointToTheNewestWithGaps(t *testing.T) {
	p := newPlot("x", points(0, 4, math.NaN(), 1, 2), formatNumber, "")
	assert.Equal(t, "M0.0 98.0L150.0 21.2M450.0 78.8L600.0 59.6", p.Line)
	assert.Equal(t, "M0.0 98.0L150.0 21.2L150.0 100L0.0 100ZM450.0 78.8L600.0 59.6L600.0 100L450.0 100Z", p.Area)
	assert.Equal(t, []string{"2", "4", "5", "40\u00a0s ago"}, []string{p.Now, p.Most, p.Top, p.From})
}

func TestAPlotWithoutALineSaysWhy(t *testing.T) {
	assert.Equal(t, "A plot needs two samples.", newPlot("x", nil, formatNumber, "none").Empty)
	assert.Equal(t, "A plot needs two samples.", newPlot("x", points(1), formatNumber, "none").Empty)
	assert.Equal(t, "A plot needs two samples.", newPlot("x", points(1, math.NaN()), formatNumber, "none").Empty)
	assert.Equal(t, "none", newPlot("x", points(math.NaN(), math.NaN()), formatNumber, "none").Empty)
}

func TestScalesEndAtOneTwoOrFive(t *testing.T) {
	for most, top := range map[float64]float64{0: 1, 1: 1, 1.5: 2, 3: 5, 7: 10, 12: 20, 501: 1000, math.MaxFloat64: math.Inf(1)} {
		assert.InDelta(t, top, roundUp(most), 0)
	}
}

func TestDurationsHaveAtMostTwoUnits(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"0\u00a0ms": 0, "120\u00a0ms": 120 * time.Millisecond, "1.5\u00a0s": 1500 * time.Millisecond, "90\u00a0s": 90 * time.Second,
		"7\u00a0min": 7*time.Minute + 30*time.Second, "3\u00a0h\u00a020\u00a0min": 200 * time.Minute, "3\u00a0d\u00a02\u00a0h": 74 * time.Hour,
	} {
		assert.Equal(t, text, shortDuration(d))
	}
	assert.Equal(t, []string{"0", "0.2", "12", "12345"}, []string{formatNumber(0), formatNumber(0.2), formatNumber(12.3), formatNumber(12345)})
}

func TestARingKeepsTheNewestInOrder(t *testing.T) {
	var r ring[int]
	for i := range 8 {
		r.add(i, 3)
	}
	assert.Equal(t, []int{5, 6, 7}, r.all())
}

// Fails if the notifications of the first list determine the scale, so that later ones are a flat
// line.
func TestTheScaleOfEventsIsWithoutTheFirstList(t *testing.T) {
	samples := []sample{
		{Time: time.Unix(0, 0), inFirstList: true},
		{Time: time.Unix(1, 0), Events: 10_000},
		{Time: time.Unix(2, 0), Events: 10_004},
		{Time: time.Unix(3, 0), Events: 10_006},
	}
	p := newPlot("x", eventRate(samples), formatNumber, "")
	assert.Equal(t, []string{"2", "4", "5"}, []string{p.Now, p.Most, p.Top})
	assert.Equal(t, "M0.0 2.0L300.0 21.2L600.0 59.6", p.Line, "the first list is at the top")
}

// Fails if a counter that falls, because its handler was removed, is drawn as a negative rate.
func TestARateIsNeverNegative(t *testing.T) {
	samples := []sample{{Time: time.Unix(0, 0), Events: 5}, {Time: time.Unix(2, 0), Events: 9}, {Time: time.Unix(3, 0), Events: 1}}
	rates := eventRate(samples)
	assert.InDelta(t, 2, rates[0].value, 0)
	assert.True(t, math.IsNaN(rates[1].value))
}
