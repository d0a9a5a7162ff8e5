package rules

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	alerts = "../../metrics/prometheus/alerts.yaml"
	every  = time.Minute
)

// firing evaluates the rules each minute from 0 until the given time, over series in promtool's
// notation. It returns the summaries of the alerts that fire at that time, by alert.
func firing(t *testing.T, until time.Duration, series ...string) map[string]string {
	options := parser.NewParser(parser.Options{})
	load := fmt.Sprintf("load %v\n  %s\n", every, strings.Join(series, "\n  "))
	loader, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true, Parser: options})
	require.NoError(t, err)
	defer func() { require.NoError(t, loader.Close()) }()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), AppendableV2: loader.Storage(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Context:    t.Context(), Logger: promslog.NewNopLogger(), Parser: options,
	})
	groups, errs := manager.LoadGroups(every, labels.EmptyLabels(), "", nil, false, alerts)
	require.Empty(t, errs)
	for at := time.Unix(0, 0); !at.After(time.Unix(0, 0).Add(until)); at = at.Add(every) {
		loader.WithSamplesTill(at, func(err error) {
			require.NoError(t, err)
			for _, group := range groups {
				group.Eval(loader.Context(), at)
			}
		})
	}
	found := map[string]string{}
	for _, group := range groups {
		for _, rule := range group.Rules() {
			require.NoError(t, rule.LastError())
			for _, alert := range rule.(*rules.AlertingRule).ActiveAlerts() {
				if alert.State == rules.StateFiring {
					found[rule.Name()] = alert.Annotations.Get("summary")
					assert.NotContains(t, alert.Annotations.String(), "error expanding template")
				}
			}
		}
	}
	return found
}

// tests has, for each alert, series that make it fire after the given time, and not a minute
// earlier.
var tests = map[string]struct {
	after   time.Duration
	series  string
	summary string
}{
	"WatchMirrorNotSynced": {
		5 * time.Minute, `watchmirror_cache_synced{name="pods",source_namespace="shop"} 0x60`,
		"pods has no first list after 5 minutes",
	},
	"WatchMirrorRefused": {
		2 * time.Minute, `watchmirror_cache_phase{name="pods",phase="forbidden"} 1x60`,
		"The source refuses pods: forbidden",
	},
	"WatchMirrorFailing": {
		5 * time.Minute, `watchmirror_cache_consecutive_failures{name="pods"} 4x60`,
		"pods has failed 4 times in a row",
	},
	"WatchMirrorStale": {
		2 * time.Minute, `watchmirror_cache_staleness_seconds{name="pods"} 190+60x60`,
		"pods may be stale for 5m 10s",
	},
	"WatchMirrorStopped": {
		5 * time.Minute, `watchmirror_cache_phase{name="pods",phase="stopped"} 1x60`,
		"pods has stopped and the process is still running",
	},
	"WatchMirrorQuarantined": {
		10 * time.Minute, `watchmirror_cache_quarantined_objects{name="pods"} 2x60`,
		"2 objects of pods are quarantined",
	},
	"WatchMirrorHandlerBehind": {
		5 * time.Minute, `watchmirror_cache_handler_oldest_change_age_seconds{name="pods",handler="queue"} 90x60`,
		"Handler queue of pods is 1m 30s behind",
	},
	"WatchMirrorHandlerPanics": {
		3 * time.Minute, `watchmirror_cache_handler_panics_total{name="pods",handler="queue"} 0 0 0 1x60`,
		"Handler queue of pods panics",
	},
	"WatchMirrorMemoryDoubled": {
		71 * time.Minute, `watchmirror_cache_objects_bytes{name="pods"} 60000000x60 134217728x60`,
		"The objects of pods take 128MiB, twice as much as an hour ago",
	},
	"WatchMirrorRelists": {
		30 * time.Minute, `watchmirror_cache_lists_total{name="pods"} 1x29 21x60`,
		"pods made 20 lists within an hour",
	},
	"WatchMirrorDiverged": {
		3 * time.Minute, `watchmirror_cache_failures_total{name="pods",cause="divergence"} 0 0 0 1x60`,
		"pods differed from its source",
	},
}

func TestEachAlertFiresWhenItsTimeHasPassedAndNotEarlier(t *testing.T) {
	for alert, test := range tests {
		t.Run(alert, func(t *testing.T) {
			assert.Equal(t, map[string]string{alert: test.summary}, firing(t, test.after, test.series))
			assert.Empty(t, firing(t, test.after-every, test.series))
		})
	}
}

func TestNoAlertFiresForAHealthyCache(t *testing.T) {
	assert.Empty(t, firing(t, 2*time.Hour,
		`watchmirror_cache_synced{name="pods"} 1x120`,
		`watchmirror_cache_phase{name="pods",phase="watching"} 1x120`,
		`watchmirror_cache_phase{name="pods",phase="paused"} 0 1 0x118`,
		`watchmirror_cache_phase{name="pods",phase="forbidden"} 0x120`,
		`watchmirror_cache_phase{name="pods",phase="stopped"} 0x120`,
		`watchmirror_cache_staleness_seconds{name="pods"} 1 61 121 181 1 61x115`,
		`watchmirror_cache_consecutive_failures{name="pods"} 0 1 2 0x117`,
		`watchmirror_cache_quarantined_objects{name="pods"} 0 3 0x118`,
		`watchmirror_cache_handler_oldest_change_age_seconds{name="pods",handler="queue"} 0 70 0x118`,
		`watchmirror_cache_handler_panics_total{name="pods",handler="queue"} 3x120`,
		`watchmirror_cache_lists_total{name="pods"} 1x60 2x60`,
		`watchmirror_cache_objects_bytes{name="pods"} 60000000x60 110000000x60`,
		`watchmirror_cache_objects_bytes{name="small"} 1000x60 40000000x60`,
		`watchmirror_cache_objects_bytes{name="for minutes"} 60000000x60 150000000x5 60000000x60`,
		`watchmirror_cache_failures_total{name="pods",cause="divergence"} 0x120`,
		`watchmirror_cache_failures_total{name="pods",cause="expired"} 0 1 2x118`,
	))
}

func TestEachAlertHasATestAndSaysWhatItIsAbout(t *testing.T) {
	manager := rules.NewManager(&rules.ManagerOptions{
		Context: t.Context(), Logger: promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(every, labels.EmptyLabels(), "", nil, false, alerts)
	require.Empty(t, errs)
	count := 0
	for _, group := range groups {
		for _, rule := range group.Rules() {
			count++
			assert.Contains(t, tests, rule.Name())
			alert := rule.(*rules.AlertingRule)
			assert.Contains(t, []string{"critical", "warning"}, alert.Labels().Get("severity"))
			assert.NotEmpty(t, alert.Annotations().Get("description"), rule.Name())
		}
	}
	assert.Len(t, tests, count)
}
