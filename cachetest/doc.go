// Package cachetest tests programs that list and watch. Its [Source] is an in-memory collection of
// objects that is listed and watched by the rules of a Kubernetes API server, and that fails on
// request.
//
// # A test of a controller
//
// Pass a [Source] to the controller instead of a client. In a bubble of testing/synctest a test
// takes no real time:
//
//	synctest.Test(t, func(t *testing.T) {
//		src := cachetest.NewTestSourceOf[*Pod](t, cachetest.Options{})
//		src.MustApply(t, newPod("web-1"))
//		controller := NewController(src)
//		// klog.Logger{} keeps the failures of the scripted outage out of the test's output.
//		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
//		defer cancel()
//		go controller.Run(ctx)
//		synctest.Wait()
//		require.Equal(t, []string{"web-1"}, controller.Handled())
//
//		// An outage of ten minutes, after which the server's history of that time is compacted.
//		src.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
//		src.CloseWatches()
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
// [NewTestSourceOf], and [NewTestSource] for unstructured objects, close the source with its test,
// and fail the test if a scripted fault never fired.
//
// # A source
//
// A [Source] holds objects of any type with Kubernetes metadata. [Source.Create], [Source.Update],
// [Source.Apply] and [Source.Delete] change it; each change gets the next resource version and is
// kept in the history. A *Source has the methods of a ListerWatcher, so it is passed to a reflector
// or informer in place of a client:
//
//	src := cachetest.NewSource(cachetest.Options{})
//	defer src.Close()
//	err := src.Apply(pod("default", "web-1"), pod("default", "web-2"))
//	list, err := src.List(metav1.ListOptions{Limit: 1})
//	events, err := src.Watch(metav1.ListOptions{ResourceVersion: "1"})
//
// It supports paging with continue tokens, resource version matches, compaction ("410 Expired"),
// bookmarks, streaming lists, label and field selectors, and timeouts. Objects are copied in and
// out.
//
// Unstructured objects need no options. [NewTestSourceOf], and [NewSourceOf] outside of tests, make
// a source of typed objects; Options.NewList returns the list type that typed clients return.
// [Source.Namespace] is a source of one namespace, for a mirror of several: all have the versions
// of one server, and one can be forbidden alone:
//
//	src.Namespace("secret").FailRequests(cachetest.Forever, apierrors.NewForbidden(resource, "", cause))
//
// # Virtual time
//
// Run tests in a bubble of [testing/synctest]: time advances when all goroutines wait, and
// synctest.Wait returns when nothing more can happen at the current time. Everything in this
// package works in a bubble, where [Source.Requests] has the exact time of each request. Make the
// client inside the bubble, and stop it and close the source before the bubble's function returns:
// remaining goroutines fail the test.
//
// # Faults
//
// The fault script may be written before a run and changed during it:
//
//   - requests that fail, hang, or are late: [Source.FailRequests], [Source.FailLists],
//     [Source.FailWatches], [Source.HangLists], [Source.DelayWatches], ...; for everything else the
//     hooks [Source.OnList] and [Source.OnWatch];
//   - watches that end, break or are silent: [Source.CloseNextWatches], [Source.BreakNextWatches],
//     [Source.CloseWatches], [Source.Silence], ...;
//   - incorrect data: [Source.DeleteSilently], [Source.ServeOldLists], [Source.Rollback],
//     [Source.SendBookmarksAt], [Source.Inject], [Source.MangleList], ...;
//   - compacted history: [Source.Compact], [Source.CompactWatches], [Source.ExpireContinueTokens].
//
// [Source.Heal] ends all faults; a client must then converge.
//
// # HTTP
//
// A [Handler] serves sources in the JSON protocol of an API server. A loopback socket would stop a
// bubble's time, so [NewServer] runs it on a [Listener], an in-memory network whose connections can
// be cut and frozen:
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
// Scripted API errors are sent as a Status with its HTTP code; network errors, such as
// [ErrConnectionRefused], cut the connection.
//
// A client of client-go, or a manager of controller-runtime, reaches the listener by its config:
//
//	config := &rest.Config{Host: srv.URL, Dial: srv.Listener.DialContext}
//
// The handler only reads. Let the client's writes in a test change the source, for example with
// package interceptor of controller-runtime. Close of an httptest.Server waits for open watches:
// end the client or close the source before, also when the test fails.
//
// # Conformance
//
// Package conformance, in this directory, checks sources and stores against the promises on which
// reflectors and readers rely.
package cachetest
