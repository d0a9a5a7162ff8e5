// Package conformance checks a source or a store against the promises on which reflectors and readers
// rely:
//
//	func TestMySource(t *testing.T) {
//		conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{New: newRig})
//	}
//
//	func TestMyStore(t *testing.T) {
//		conformance.TestStore(t, conformance.StoreConfig{New: newStore})
//	}
//
// Each promise is a subtest on a new source or store. A failure names the consequence for a reflector:
// "a reflector would miss MODIFIED a=2: the watch has ended".
//
// The suites accept this module's interfaces and client-go's. They find optional methods by name. Set
// in the config what a source does not promise ([ListerWatcherConfig].NoBookmarks, for example);
// go test -v prints each skipped check with the reason.
//
// # Rigs
//
// A [ListerWatcherRig] has the source and functions that change its backend. [RigOver] makes one for a
// source whose backend is a [cachetest.Source], such as a client of a [cachetest.Handler].
//
// # Time
//
// Check a source in process, or over a [cachetest.Listener], in virtual time
// ([ListerWatcherConfig].Virtual). Check one over a socket in real time, with Quiet longer than an
// event takes.
package conformance
