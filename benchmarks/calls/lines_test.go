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

func TestCallsBesideAnotherGoroutineBeginAfterIt(t *testing.T) {
	steps := 0
	step := func(int) error {
		steps++
		return nil
	}
	call := func(int, int) error { return nil }
	delays, err := beside{callers: 2, calls: 3}.round(contenders{call: call, other: step})
	require.NoError(t, err)
	require.Len(t, delays, 6)
	require.Positive(t, steps)

	fail := func(int) error { return errLost }
	_, err = beside{callers: 1}.round(contenders{call: call, other: fail})
	require.ErrorIs(t, err, errLost)
}
