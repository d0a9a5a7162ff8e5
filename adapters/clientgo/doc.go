// Package clientgo connects this library with programs that use client-go, in two ways:
//
//   - It makes sources from a rest.Config or a REST client. Address, TLS and authentication remain
//     client-go's (kubeconfig files, service accounts, client certificates, exec plugins,
//     impersonation). Package kubeapi reads lists and watches, object by object.
//   - It presents informers, indexers and listers of this library as client-go's: for generated
//     informer factories, generated listers and controller-runtime.
//
// It is a separate module, because the library itself does not need client-go.
//
// # Informers
//
// InformerFor replaces a generated factory's informer for a type by one of this library. Call it
// before anything else requests that informer from the factory:
//
//	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 10*time.Minute,
//		informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
//	informer, err := clientgo.InformerFor(factory, &corev1.Pod{}, clientset.CoreV1().Pods(namespace),
//		clientgo.FactoryOptions{TweakListOptions: tweak})
//
// Keep the result: it is a cache.StatusReporter, which factory.Core().V1().Pods().Informer() is
// not, since client-go v0.37 wraps it. From then on, the Informer and the Lister of
// factory.Core().V1().Pods() use it. The factory's resync period and WithTransform apply to it. The
// namespace is that of the client, metav1.NamespaceAll for all. The function of
// WithTweakListOptions must be passed again in the options. WithInformerName has no effect on it.
// Fake clientsets work too.
//
// A manager of controller-runtime makes all of its informers with this function:
//
//	manager, err := ctrl.NewManager(config, ctrl.Options{
//		Cache: ctrlcache.Options{NewInformer: clientgo.NewInformer},
//	})
//
// or, with options for all of them, with clientgo.NewInformerFunc(options).
//
// Handlers, indexes, transforms and watch error handlers need no change. SharedIndexInformer lists
// the differences. NewInformerWithOptions accepts all options of this library. As in client-go, the
// first list is streamed unless the source says that it cannot stream; ReflectorOptions.Strategy
// changes that, client-go's feature gate WatchListClient does not. SharedIndexInformer, Indexer and
// GenericLister present an existing informer, indexer or lister. ResourceEventHandler adapts a
// handler written for client-go to an informer of this library.
//
// # Sources
//
// With a config from any place:
//
//	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig) // or rest.InClusterConfig()
//	...
//	source, err := clientgo.NewSource(config, kubeapi.Options{
//		Resource:   corev1.SchemeGroupVersion.WithResource("pods"),
//		ObjectType: &corev1.Pod{},
//	})
//
// or with an existing client, whose connections and rate limiter are then shared:
//
//	source, err := clientgo.NewSourceForClient(clientset.CoreV1().RESTClient(), kubeapi.Options{
//		Resource:   schema.GroupVersionResource{Resource: "pods"},
//		ObjectType: &corev1.Pod{},
//	})
//
// or, for a typed client that exists, also a fake one, whose own lists and watches are then used:
//
//	source := clientgo.NewSourceOf(clientset.CoreV1().Pods(namespace))
//
// The first two return a *kubeapi.ListerWatcher. Its documentation describes the lists, watches and
// errors; the errors are apimachinery's, so errors.IsForbidden and similar functions work. Use it
// like any source:
//
//	controller := cache.New(&cache.Config{ListerWatcher: source, Store: indexer})
//
// Without an ObjectType the objects are *unstructured.Unstructured, of any resource; with a
// *metav1.PartialObjectMetadata only their metadata is requested.
//
// # Fields by name
//
// kubeapi.Options.Fields names the fields of objects to keep; all others are dropped before
// decoding. NewSource and NewSourceForClient support it, and so does every informer with such a
// source, including client-go's own and those of generated factories:
//
//	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) toolscache.SharedIndexInformer {
//		source, err := clientgo.NewSourceForClient(client.CoreV1().RESTClient(), kubeapi.Options{
//			Resource: schema.GroupVersionResource{Resource: "pods"}, ObjectType: &corev1.Pod{},
//			Fields: []string{"spec.nodeName", "status.phase"},
//		})
//		...
//		return clientgo.NewInformer(source, &corev1.Pod{}, resync, toolscache.Indexers{})
//	})
//
// NewListWatchFromClient has no such option, because client-go's codecs decode its objects. The
// documentation of package kubeapi describes such objects and what prevents writing them back.
//
// # Fields of a rest.Config that apply
//
//	Host                            address and path prefix, whose escapes are decoded as in
//	                                client-go (/a%2Fb is /a/b); user and password are refused
//	TLS, certificates, Username,    through the transport that client-go makes of them; a
//	BearerToken, BearerTokenFile,   token file is read again about once a minute
//	Impersonate, ExecProvider,
//	AuthProvider, Transport,
//	WrapTransport, Dial, Proxy
//	UserAgent                       if Options.UserAgent is empty; kubeapi's default if both are
//	RateLimiter, or QPS and Burst   before each request; see below
//	WarningHandler(WithContext)     if Options.OnWarning is nil: each text once, with code 299
//	AcceptContentTypes, or          if Options.Encodings is empty: those of JSON, protobuf and
//	ContentType                     CBOR that they name and ObjectType can be decoded from;
//	                                nothing named is kubeapi's default
//	DisableCompression              either of the two sets it
//
// Not used: Timeout, because client-go applies it to a whole request, which would end every watch
// (bound lists with a context; stalled ones fail by themselves, see kubeapi.Options.StallTimeout);
// APIPath and GroupVersion, because paths are built from Options.Resource (/api/VERSION for the
// core API, /apis/GROUP/VERSION for others); NegotiatedSerializer, because kubeapi decodes.
//
// # Differences from client-go's clients
//
//   - There is no client-side rate limit unless the config sets one: a QPS of 0 means none here,
//     and 5 requests a second in client-go. A reflector limits itself to a few requests a minute.
//     Several sources share a limit only through one RateLimiter. NewSourceForClient uses the
//     client's own limiter.
//   - The transport waits for the limiter before each request and before each followed redirect.
//     For kubeapi this looks like a server that does not respond: a list that waits longer than
//     Options.StallTimeout, by default 2 minutes, fails with kubeapi.ErrStalled. For a slower
//     limiter set a longer StallTimeout. A watch waits as long as its context allows.
//   - A request is sent once. client-go retries a refused request, up to ten times, after the
//     server's Retry-After. Here the reflector reports the refusal and waits as long before its
//     next request.
//   - Protobuf is requested for every Go type that can be decoded from it, unless the config or the
//     options name something else.
//   - CBOR is requested if the config names it, regardless of client-go's feature gates.
//   - Redirects to another scheme, host or port are errors. So are responses that are not of the
//     API, such as login pages and Tables.
//   - client-go's metrics of requests and rate limiters do not count these requests; those of its
//     transports and exec plugins do.
//   - A handler of rest.SetDefaultWarningHandler is not called; set Options.OnWarning.
//
// # Connections
//
// client-go manages them: configs with the same TLS settings share a transport, and over HTTP/2
// that is one connection for any number of sources. client-go cannot compare functions, so a config
// with Dial or Proxy gets its own connections for each source. To share those, make one REST client
// and several sources of it. For a client certificate in a file, client-go has a goroutine that
// watches the file until the transport is garbage collected.
//
// # client-go's own informers
//
// A source is also a ListerWatcher for client-go: its cache.NewSharedIndexInformer accepts it.
// client-go requests whole lists, not items, and does not know *kubeapi.UndecodableObject, which
// stands for an object that could not be decoded. It drops one from a watch with a line in the log.
// One from a list is stored, and passed to handlers, like any other object. Set a transform that
// returns its DecodeError: then the list fails and is retried, as with client-go's own clients.
//
// A transform does not help with deletions. client-go's reflector drops a DELETED event whose
// object could not be decoded before any transform, because its type is not the expected one, and
// continues the watch. The informer's store keeps the object until the next list, possibly for
// days, and no handler is notified of the deletion. (An event that may have been damaged in transit
// ends the watch first: see package kubeapi.)
//
// The reflectors of this library quarantine such an object, report it, and continue. They delete a
// deleted object as long as its name can be read.
package clientgo
