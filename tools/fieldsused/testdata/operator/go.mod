module example.com/operator

go 1.26.0

require sigs.k8s.io/controller-runtime v0.0.0

replace sigs.k8s.io/controller-runtime => ./controller-runtime
