package simulation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// TestScriptsThatOnceFailedHold runs what the simulation has found before, several times
// each, for the schedule is another one each time.
func TestScriptsThatOnceFailedHold(t *testing.T) {
	const runs = 5
	paths, err := filepath.Glob(filepath.Join("testdata", "scripts", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			input, err := script.Decode(text)
			require.NoError(t, err)
			for range runs {
				require.Empty(t, Run(t, input).Failures)
			}
		})
	}
}

func TestEveryGeneratedStepIsOneOfTheWorlds(t *testing.T) {
	for seed := range uint64(300) {
		for _, step := range script.Generate(seed).Steps {
			require.True(t, world.HasStep(step.Do) || steps[step.Do] != nil, step.Do)
		}
	}
}
