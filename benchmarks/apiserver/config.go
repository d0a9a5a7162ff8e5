package apiserver

// Config is what a server serves, and which of the protocol's variants.
type Config struct {
	// Pods is how many pods there are.
	Pods int
	// Events is how many of them change once a watch has begun, one after the other
	// and as fast as the watch's reader reads. Every watch sees that many.
	Events int
	// Paged makes the server give a list in the pages that are asked for, as one
	// without a watch cache does. Without it a list is whole, whatever limit it asks
	// for: so do servers with a watch cache, when no exact version is asked for.
	Paged bool
	// Streams makes the server answer a watch with sendInitialEvents, which it
	// otherwise refuses, as servers before Kubernetes 1.32 do.
	Streams bool
}
