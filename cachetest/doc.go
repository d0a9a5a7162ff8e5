// Package cachetest is a source of objects to test caches and controllers
// against: a collection with resource versions that is listed and watched by the
// rules of a Kubernetes API server, entirely in memory, and that misbehaves on
// request.
//
// # A test of a controller
//
// A controller is given a [Source] where a client would be. In a bubble of testing/synctest the test takes no time, whatever its faults last:
//
//	synctest.Test(t, func(t *testing.T) {
//		src := cachetest.NewSourceOf[*Pod]()
//		defer src.Close()
//		src.MustApply(t, newPod("web-1"))
//		controller := NewController(src)
//		ctx, cancel := context.WithCancel(t.Context())
//		defer cancel()
//		go controller.Run(ctx)
//		synctest.Wait()
//		require.Equal(t, []string{"web-1"}, controller.Handled())
//
//		// Ten minutes in which the server does not answer, and after which it does not remember what has happened in them.
//		src.CloseWatches()
//		src.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
//		src.MustApply(t, newPod("web-2"))
//		time.Sleep(10 * time.Minute)
//		require.LessOrEqual(t, len(src.Requests()), 50, "the server was not hammered")
//		src.CompactAll()
//		src.Heal()
//
//		time.Sleep(time.Minute)
//		synctest.Wait()
//		require.Equal(t, []string{"web-1", "web-2"}, controller.Handled())
//	})
//
// [NewTestSource] closes the source with its test, and fails the test if a scripted fault never fired.
//
// # A source
//
// A [Source] holds objects of any type with Kubernetes metadata. [Source.Create],
// [Source.Update], [Source.Apply] and [Source.Delete] change it; each change gets
// the next resource version and is kept in the history. [Source.ListWithContext]
// and [Source.WatchWithContext] (and the forms without a context) have the
// methods of a ListerWatcher, so a *Source is passed to a reflector or informer
// where a client would be:
//
//	src := cachetest.NewSource(cachetest.Options{})
//	defer src.Close()
//	err := src.Apply(pod("default", "web-1"), pod("default", "web-2"))
//	list, err := src.List(metav1.ListOptions{Limit: 1})
//	events, err := src.Watch(metav1.ListOptions{ResourceVersion: "1"})
//
// It knows paging with continue tokens, the resource version matches, compaction
// ("410 Expired"), bookmarks, streaming lists, label and field selectors, and
// timeouts. Objects are copied in and out.
//
// Unstructured objects need no options. [NewSourceOf] makes a source of typed objects; Options.NewList
// gives its lists the type that typed clients return.
//
// # Virtual time
//
// Tests of what happens after a minute need not take one. Run them in a bubble of
// testing/synctest: time there moves on when everybody waits, and
// synctest.Wait returns when all that can happen now has happened. Everything in
// this package waits on channels and timers, so it works in a bubble, and since
// virtual time is exact, [Source.Requests] has to the nanosecond when a client
// asked for what: the way to test that a client does not hammer its server.
//
// Make the client, and call its methods, inside of the bubble. Close what was
// opened before the bubble's function returns, or the test fails with what is
// left: that is a leak found.
//
// # Faults
//
// The methods in faults.go are a script that may be written before a run and
// changed during it:
//
//   - requests that fail, hang, or are late: [Source.FailRequests], [Source.FailLists],
//     [Source.FailWatches], [Source.HangLists], [Source.DelayWatches], ...; a hook
//     for everything else: [Source.OnList], [Source.OnWatch];
//   - watches that end, break or go silent: [Source.CloseNextWatches],
//     [Source.BreakNextWatches], [Source.CloseWatches], [Source.Silence], ...;
//   - data that is not as it should be: [Source.DeleteSilently],
//     [Source.ServeOldLists], [Source.Rollback], [Source.SendBookmarksAt],
//     [Source.Inject], [Source.MangleList], ...;
//   - history that is compacted: [Source.Compact], [Source.CompactWatches],
//     [Source.ExpireContinueTokens].
//
// [Source.Heal] ends all faults, after which a client must catch up.
//
// # HTTP
//
// A [Handler] serves sources in the JSON protocol of an API server. In a bubble,
// where a loopback socket would stop time, [NewServer] runs it on a [Listener],
// a network in memory whose connections can be cut and frozen:
//
//	srv := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
//		Resources: []cachetest.Resource{{
//			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
//			Kind:                 "Pod",
//			Source:               src,
//		}},
//	}))
//	defer srv.Close()
//	resp, err := srv.Client().Get(srv.URL + "/api/v1/pods?limit=1")
//
// Scripted errors travel as a Status with its HTTP code; those of the network,
// such as [ErrConnectionRefused], cut the connection.
//
// # Conformance
//
// The author of a source or a store can have it checked for what reflectors and
// readers rely on, by a test of three lines:
//
//	func TestMySource(t *testing.T) {
//		cachetest.TestListerWatcher(t, cachetest.ListerWatcherConfig{New: newRig})
//	}
//
//	func TestMyStore(t *testing.T) {
//		cachetest.TestStore(t, cachetest.StoreConfig{New: newStore})
//	}
//
// Each promise is a subtest on a source or store of its own, which newRig and
// newStore make. A failure says what a reflector would make of it: "a reflector
// would miss MODIFIED a=2: the watch has ended". A rig has, besides the source,
// functions that change what the source shows; [RigOver] makes one for a source whose
// backend is a [Source], such as a client of a [Handler].
//
// The suites are for anything that has the methods, whichever package its
// interfaces come from: those of this module and client-go's do alike. Optional
// methods are found by their name and checked if they are there. What a source
// cannot do, or a rig has no function for, is skipped, with the reason in the output
// of go test -v; what it does not promise is said in the config
// ([ListerWatcherConfig].NoBookmarks, for example).
//
// A source in process, or over a [Listener], is best checked in virtual time
// ([ListerWatcherConfig].Virtual). One over a socket is checked in real time; then
// Quiet, for how long nothing may happen, must be longer than an event takes, or
// events that come late and twice are not noticed.
//
// # How it is built
//
// A source has one lock; under it no code of the user's runs (but for the
// accessors of an object's metadata) and nothing blocks. Lists are cut from
// immutable snapshots. Each watch owns a goroutine and a cursor into the shared
// history. The lock of a Listener comes before that of its pipes; the two
// have nothing to do with a source's.
package cachetest
