// Package rules tests the alert rules of ../alerts.yaml with Prometheus' own rule engine. It is a module of its own, so
// that programs that publish metrics do not depend on a Prometheus server. It has no code.
package rules
