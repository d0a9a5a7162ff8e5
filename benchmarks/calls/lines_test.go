package calls

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each line checks what its calls return. Fails if a side loses an object, or a figure is missing.
func TestEachLineHasFiguresOfBothSides(t *testing.T) {
	scale := Scale{Objects: 2000, Rounds: 1}
	names := map[string]bool{}
	for _, line := range Lines() {
		require.False(t, names[line.Name], "%s twice", line.Name)
		names[line.Name] = true
		t.Run(line.Name, func(t *testing.T) {
			result, err := line.Measure(scale)
			require.NoError(t, err)
			require.Positive(t, result.Theirs)
			require.Positive(t, result.Ours)
			require.Positive(t, result.Ratio)
			require.LessOrEqual(t, result.Low, result.Ratio)
			require.GreaterOrEqual(t, result.High, result.Ratio)
		})
	}
}

func TestTheMedianOfRatiosCounts(t *testing.T) {
	result := compared([]float64{10, 20, 90}, []float64{10, 10, 10})
	require.InDelta(t, 20, result.Theirs, 0)
	require.InDelta(t, 10, result.Ours, 0)
	require.InDelta(t, 2, result.Ratio, 0)
	require.InDelta(t, 1, result.Low, 0)
	require.InDelta(t, 2, result.High, 0)
}

func TestTheOtherGoroutineHasBegunBeforeCallsAreMeasured(t *testing.T) {
	steps := 0
	running := startOther(func(int) error {
		steps++
		return nil
	})
	require.NoError(t, running.stop())
	require.Positive(t, steps)

	running = startOther(func(int) error { return errLost })
	require.ErrorIs(t, running.stop(), errLost)
}
