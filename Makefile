# Everything here is a shortcut for a command that works without make.

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run the quickstart: a mirror of a small API, with its connection cut
	go run ./examples/quickstart

.PHONY: test
test: ## run the tests of the root module
	go test ./...

.PHONY: race
race: ## run them with the race detector
	go test -race ./...

.PHONY: fuzz
fuzz: ## fuzz each target for 20 seconds (FUZZTIME=1m for longer, 180 for all of them in 180 seconds)
	.ci/fuzz $${FUZZTIME:-20s}

.PHONY: simulation
simulation: ## random scripts against a model, in virtual time (SEEDS=100000 FROM=1 for others)
	go run ./internal/simulation/cmd -seeds $${SEEDS:-2000} -from $${FROM:-0}

.PHONY: mutants
mutants: ## small faults, each of which a named test must find
	go run ./internal/mutants/cmd

.PHONY: route
route: ## a report: the functions and statements that an event, a list or a join enters
	go run ./internal/route

.PHONY: soak
soak: ## a day of churn in virtual time: heap, goroutines and buffers stay flat
	go test -count=1 -v -run TestADayOfChurn ./internal/simulation/soak -soak 24h

.PHONY: compat
compat: ## names and behaviour against client-go; one controller on both packages, by its import alone
	cd benchmarks && go test ./compat/...

.PHONY: adapters
adapters: ## test the adapters for client-go
	cd adapters/clientgo && go test -race ./...

.PHONY: integration
integration: ## test against a real Kubernetes API server, in process
	cd integration && go test -parallel 8 -v .

.PHONY: sources
sources: ## test the sources for etcd and NATS against servers in process
	cd sources/etcd && go test -race ./...
	cd sources/nats && go test -race ./...
	cd integration && go test -race ./etcd/... ./nats/...

.PHONY: metrics
metrics: ## test the metrics for Prometheus and the alert rules
	cd metrics/prometheus && go test -race ./...
	cd integration && go test ./rules

.PHONY: controllers
controllers: ## test the examples that need client-go
	cd benchmarks && go test -race ./examples/...

.PHONY: compare
compare: ## measure side by side with client-go, into benchmarks/RESULTS.md; takes an hour on a quiet machine
	cd benchmarks && go run ./compare

.PHONY: cover
cover: ## statement coverage of the root package; fails below 90 %
	.ci/coverage

.PHONY: lint
lint: ## gofmt, vet, staticcheck, errcheck and ineffassign, in all modules
	.ci/lint

.PHONY: layers
layers: ## uses of a higher layer in the root package
	go run ./internal/layers

.PHONY: pictures
pictures: ## make the pictures of docs/statuspage.md with Chromium
	go test ./statuspage -run TestABrowser -pictures "$$PWD/docs/images" -pages overview,failing,memory

.PHONY: api
api: ## record the exported API in .ci/api, after an intended change
	go run ./internal/api -write

.PHONY: readable
readable: ## a report about the code: density, complex functions, long lines (DIRS=". kubeapi" for some packages)
	go run ./internal/readable $(DIRS)

.PHONY: ci
ci: ## what CI runs
	.ci/run

.PHONY: full
full: ## what CI runs, and what takes longer: a whole kube-apiserver, all faults, races against real servers (hours)
	.ci/full
