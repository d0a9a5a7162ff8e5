package prometheus_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	cacheprometheus "github.com/watchmirror/cache/metrics/prometheus"
)

// published returns the names of all metrics, without their common prefix.
func published() []string {
	descs := make(chan *prometheus.Desc)
	go func() { defer close(descs); cacheprometheus.New().Describe(descs) }()
	name := regexp.MustCompile(`fqName: "watchmirror_cache_(\w+)"`)
	var names []string
	for desc := range descs {
		names = append(names, name.FindStringSubmatch(desc.String())[1])
	}
	return names
}

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func TestTheAlertsAndTheDashboardNameOnlyPublishedMetrics(t *testing.T) {
	names := published()
	used := regexp.MustCompile(`watchmirror_cache_(\w+)`)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		found := used.FindAllStringSubmatch(read(t, file), -1)
		assert.NotEmpty(t, found)
		for _, match := range found {
			name := match[1]
			if !slices.Contains(names, name) { // otherwise a histogram's
				name = strings.TrimSuffix(name, "_bucket")
			}
			assert.Contains(t, names, name, file)
		}
	}
}

func TestTheReadmeListsEveryMetricAndEveryAlert(t *testing.T) {
	readme := read(t, "README.md")
	for _, name := range published() {
		assert.Contains(t, readme, "`"+name+"`")
	}
	for _, match := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "alerts.yaml"), -1) {
		assert.Contains(t, readme, "`"+match[1]+"`")
	}
}

func TestThePanelsOfTheDashboardDoNotOverlap(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
			Type    string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard))
	cells := map[[2]int]string{}
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		assert.False(t, ids[panel.ID], panel.Title)
		ids[panel.ID] = true
		assert.Equal(t, panel.Type != "row", len(panel.Targets) > 0, panel.Title)
		assert.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				assert.Empty(t, cells[[2]int{x, y}], panel.Title)
				cells[[2]int{x, y}] = panel.Title
			}
		}
	}
}
