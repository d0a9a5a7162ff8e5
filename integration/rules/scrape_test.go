package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	cacheprometheus "github.com/watchmirror/cache/metrics/prometheus"
)

type object = *metav1.PartialObjectMetadata

// program is an informer whose metrics are scraped each minute of virtual time.
type program struct {
	source   *cachetest.Source
	informer *cache.Informer[object]
	registry *prometheus.Registry
	// stop ends the informer's run.
	stop func()
	// scrapes has, for each series, a value for each minute: "_" where it is missing.
	scrapes map[string][]string
	// counters are the values of the counters in the last scrape.
	counters map[string]float64
	minutes  int
}

// newProgram prepares an informer, which change may configure, for a source with one object.
func newProgram(
	t *testing.T, change func(*cache.InformerConfig[object]),
) *program {
	p := &program{
		source:   cachetest.NewTestSourceOf[object](t, cachetest.Options{}),
		registry: prometheus.NewPedanticRegistry(),
		scrapes:  map[string][]string{},
		counters: map[string]float64{},
	}
	p.source.MustApply(t, named("web", ""))
	metrics := cacheprometheus.New()
	metrics.MemoryInterval = time.Minute
	require.NoError(t, p.registry.Register(metrics))
	config := cache.InformerConfig[object]{
		Name: "pods",
		ReflectorOptions: cache.ReflectorOptions{
			MetricsProvider: metrics,
			ErrorHandler:    func(context.Context, *cache.Reflector, error) {},
		},
	}
	if change != nil {
		change(&config)
	}
	p.informer = cache.NewTypedInformer(p.source, config)
	_, err := metrics.Add("pods", p.informer)
	require.NoError(t, err)
	return p
}

// run runs the informer until stop is called.
func (p *program) run(t *testing.T) {
	quiet := klog.NewContext(t.Context(), klog.Logger{}) // panics of handlers would be logged
	ctx, cancel := context.WithCancel(quiet)
	ran := make(chan error, 1)
	go func() { ran <- p.informer.Run(ctx) }()
	p.stop = func() {
		cancel()
		assert.NoError(t, <-ran)
		p.stop = func() {}
	}
}

// handle adds a handler named "queue".
func (p *program) handle(t *testing.T, add func(any)) cache.ResourceEventHandlerRegistration {
	t.Helper()
	handler := cache.ResourceEventHandlerFuncs{AddFunc: add}
	options := cache.HandlerOptions{Name: "queue", RecoverPanics: true}
	registration, err := p.informer.Shared().AddEventHandlerWithOptions(handler, options)
	require.NoError(t, err)
	return registration
}

// scrapeFor scrapes each minute for so long.
func (p *program) scrapeFor(t *testing.T, d time.Duration) {
	t.Helper()
	for range int(d / every) {
		time.Sleep(every)
		synctest.Wait()
		p.scrape(t)
	}
}

// scrape records a scrape, in which no counter may have fallen.
func (p *program) scrape(t *testing.T) {
	t.Helper()
	families, err := p.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series := family.GetName() + labelsOf(metric)
			p.record(series, valueOf(metric))
			if metric.Counter == nil {
				continue
			}
			assert.GreaterOrEqual(t, metric.Counter.GetValue(), p.counters[series], series)
			p.counters[series] = metric.Counter.GetValue()
		}
	}
	p.minutes++
}

// record records the value of a series in the present scrape.
func (p *program) record(series string, value float64) {
	missing := p.minutes - len(p.scrapes[series])
	p.scrapes[series] = append(p.scrapes[series], slices.Repeat([]string{"_"}, missing)...)
	p.scrapes[series] = append(p.scrapes[series], fmt.Sprint(value))
}

// firing returns the alerts that fire at the last scrape.
func (p *program) firing(t *testing.T) []string {
	t.Helper()
	var series []string
	for name, values := range p.scrapes {
		series = append(series, name+" "+strings.Join(values, " "))
	}
	last := time.Duration(p.minutes-1) * every
	return slices.Sorted(maps.Keys(firing(t, last, series...)))
}

func labelsOf(metric *dto.Metric) string {
	var pairs []string
	for _, pair := range metric.GetLabel() {
		pairs = append(pairs, fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue()))
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// valueOf returns the value of a metric, of a histogram the number of its observations.
func valueOf(metric *dto.Metric) float64 {
	if metric.Counter != nil {
		return metric.Counter.GetValue()
	}
	if metric.Histogram != nil {
		return float64(metric.Histogram.GetSampleCount())
	}
	return metric.Gauge.GetValue()
}

// named returns an object with a note.
func named(name, note string) object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "shop",
		Name:        name,
		Annotations: map[string]string{"note": note},
	}}
}

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)

// expireEachWatch runs the program for an hour in which each watch ends with an expired version.
func expireEachWatch(t *testing.T, p *program) {
	p.run(t)
	for range 30 {
		p.scrapeFor(t, 2*time.Minute)
		p.source.MustApply(t, named("web", time.Now().String()))
		p.source.CompactAll()
		p.source.BreakWatches(cachetest.ErrExpired())
	}
	p.scrapeFor(t, time.Minute)
}

// outages are programs in which something fails, and the alerts that fire at their end.
var outages = map[string]struct {
	configure func(*cache.InformerConfig[object])
	run       func(*testing.T, *program)
	alerts    []string
}{
	"the first list fails": {
		run: func(t *testing.T, p *program) {
			p.source.FailRequests(cachetest.Forever, cachetest.ErrInternal())
			p.run(t)
			p.scrapeFor(t, 8*time.Minute)
		},
		alerts: []string{"WatchMirrorFailing", "WatchMirrorNotSynced"},
	},
	"the source forbids the list": {
		run: func(t *testing.T, p *program) {
			p.source.FailRequests(cachetest.Forever, errForbidden)
			p.run(t)
			p.scrapeFor(t, 4*time.Minute)
		},
		alerts: []string{"WatchMirrorRefused"},
	},
	"the source is lost": {
		run: func(t *testing.T, p *program) {
			p.run(t)
			p.scrapeFor(t, 10*time.Minute)
			p.source.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
			p.source.CloseWatches()
			p.scrapeFor(t, 20*time.Minute)
		},
		alerts: []string{"WatchMirrorFailing", "WatchMirrorStale"},
	},
	"the watch is silent": {
		configure: func(config *cache.InformerConfig[object]) {
			config.ReflectorOptions.MinWatchTimeout = time.Hour // the next watch would be current
		},
		run: func(t *testing.T, p *program) {
			p.run(t)
			p.source.OnList(func(metav1.ListOptions) error { return cachetest.ErrInternal() })
			p.scrapeFor(t, 2*time.Minute)
			p.source.Silence()
			p.scrapeFor(t, 6*time.Minute)
		},
		alerts: []string{"WatchMirrorStale"},
	},
	"the informer has stopped": {
		run: func(t *testing.T, p *program) {
			p.run(t)
			p.scrapeFor(t, time.Minute)
			p.stop()
			p.scrapeFor(t, 7*time.Minute)
		},
		alerts: []string{"WatchMirrorStale", "WatchMirrorStopped"},
	},
	"an object is refused": {
		configure: func(config *cache.InformerConfig[object]) {
			config.Transform = func(object) (object, error) { return nil, errors.New("refused") }
		},
		run: func(t *testing.T, p *program) {
			p.run(t)
			p.scrapeFor(t, 12*time.Minute)
		},
		alerts: []string{"WatchMirrorQuarantined"},
	},
	"a handler hangs": {
		run: func(t *testing.T, p *program) {
			hangs := make(chan struct{})
			p.handle(t, func(any) { <-hangs })
			p.run(t)
			p.scrapeFor(t, 8*time.Minute)
			close(hangs)
		},
		alerts: []string{"WatchMirrorHandlerBehind"},
	},
	"a handler panics": {
		run: func(t *testing.T, p *program) {
			p.handle(t, func(obj any) {
				if obj.(object).Name == "bad" {
					panic("expected")
				}
			})
			p.run(t)
			p.scrapeFor(t, 2*time.Minute)
			p.source.MustApply(t, named("bad", ""))
			p.scrapeFor(t, 2*time.Minute)
		},
		alerts: []string{"WatchMirrorHandlerPanics"},
	},
	"the objects have doubled": {
		run: func(t *testing.T, p *program) {
			const size = 30_000_000
			p.source.MustApply(t, named("web", strings.Repeat("x", size)))
			p.run(t)
			p.scrapeFor(t, 65*time.Minute)
			p.source.MustApply(t, named("web", strings.Repeat("y", 2*size+size/10)))
			p.scrapeFor(t, 12*time.Minute)
		},
		alerts: []string{"WatchMirrorMemoryDoubled"},
	},
	"each watch expires": {
		run:    expireEachWatch,
		alerts: []string{"WatchMirrorRelists"},
	},
	"each watch expires and lists are streamed": {
		configure: func(config *cache.InformerConfig[object]) {
			config.ReflectorOptions.Strategy = cache.ListStreaming
		},
		run:    expireEachWatch,
		alerts: []string{"WatchMirrorRelists"},
	},
	"an object was lost": {
		run: func(t *testing.T, p *program) {
			p.run(t)
			p.scrapeFor(t, 2*time.Minute)
			require.NoError(t, p.informer.Shared().GetStore().Delete(named("web", "")))
			require.Error(t, p.informer.Verify(t.Context()))
			p.scrapeFor(t, 2*time.Minute)
		},
		alerts: []string{"WatchMirrorDiverged"},
	},
}

// The rules and the metrics agree on names, labels and units. Fails if either changes alone.
func TestEachAlertFiresFromTheMetricsOfAProgram(t *testing.T) {
	fired := map[string]bool{}
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			var p *program
			synctest.Test(t, func(t *testing.T) {
				p = newProgram(t, outage.configure)
				p.scrape(t)
				outage.run(t, p)
				p.stop()
			})
			assert.Equal(t, outage.alerts, p.firing(t))
		})
		for _, alert := range outage.alerts {
			fired[alert] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(tests)), slices.Collect(maps.Keys(fired)))
}

// A counter that falls counts as a restart: all that it had counted before is counted again. Here a
// handler that has panicked is removed.
func TestNoAlertFiresWhenAHandlerThatHasPanickedIsRemoved(t *testing.T) {
	var p *program
	synctest.Test(t, func(t *testing.T) {
		p = newProgram(t, nil)
		panics := func(any) { panic("expected") }
		removed := p.handle(t, panics)
		p.handle(t, panics)
		p.run(t)
		p.scrapeFor(t, 15*time.Minute)
		require.NoError(t, p.informer.Shared().RemoveEventHandler(removed))
		p.scrapeFor(t, 2*time.Minute)
		p.handle(t, func(any) {})
		p.scrapeFor(t, 2*time.Minute)
		p.stop()
	})
	assert.Empty(t, p.firing(t))
}

func TestNoAlertFiresForAProgramWithoutFailures(t *testing.T) {
	var p *program
	synctest.Test(t, func(t *testing.T) {
		p = newProgram(t, nil)
		p.handle(t, func(any) {})
		p.run(t)
		for i := range 60 {
			p.source.MustApply(t, named("web", fmt.Sprint(i)))
			p.scrapeFor(t, 2*time.Minute)
		}
		p.stop()
	})
	assert.Empty(t, p.firing(t))
}
