// Package rules tests the alert rules of metrics/prometheus with Prometheus' rule engine. It has no
// code.
package rules
