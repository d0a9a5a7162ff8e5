// Package prometheus publishes the metrics of informers, reflectors and controllers to Prometheus.
// It is a separate module, because the library does not need github.com/prometheus/client_golang.
//
// One Metrics serves a whole program. Register it, set it as the MetricsProvider of informers for
// their instruments, and add each informer by name for the metrics that are read from its status at
// each scrape:
//
//	metrics := cacheprometheus.New()
//	registry.MustRegister(metrics)
//	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
//		Name: "pods",
//		ReflectorOptions: cache.ReflectorOptions{MetricsProvider: metrics},
//	})
//	remove, err := metrics.Add("pods", pods)
//
// README.md in this directory lists the metrics. dashboard.json is a Grafana dashboard, alerts.yaml
// has alert rules.
package prometheus
