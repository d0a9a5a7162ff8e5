// Package rules tests the alert rules of ../alerts.yaml with Prometheus' rule engine. It is a separate module, so that
// programs that publish metrics do not depend on a Prometheus server. It has no code.
package rules
