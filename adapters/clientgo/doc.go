// Package clientgo stands between this library and programs that use client-go, in two
// ways:
//
//   - It makes sources for a mirror out of what such a program has already: a rest.Config,
//     or a REST client. Address, TLS and authentication remain client-go's (kubeconfig
//     files, service accounts, client certificates, exec plugins, impersonation); lists and
//     watches are read by package kubeapi, object by object.
//   - It presents informers, indexers and listers of this library as client-go's, so that
//     they can be used where those are asked for: in generated informer factories, in
//     generated listers, in controller-runtime.
//
// It is a module of its own, because the library itself does not need client-go.
//
// # Informers
//
// InformerFor makes the informer of a generated factory for a type one of this library, if
// it is called before anybody has asked the factory for it:
//
//	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 10*time.Minute,
//		informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
//	_, err := clientgo.InformerFor(factory, &corev1.Pod{}, clientset.CoreV1().Pods(namespace),
//		clientgo.FactoryOptions{TweakListOptions: tweak})
//
// From then on factory.Core().V1().Pods(), its Informer and its Lister, are fed by it. Of the
// factory's options the resync period and WithTransform reach it by themselves. The
// namespace is that of the client, metav1.NamespaceAll for all, and the function of
// WithTweakListOptions is given in the options once more; WithInformerName has no effect on it.
// Fake clientsets work as others do.
//
// A manager of controller-runtime has all of its informers made here:
//
//	manager, err := ctrl.NewManager(config, ctrl.Options{
//		Cache: ctrlcache.Options{NewInformer: clientgo.NewInformer},
//	})
//
// or, with options for all of them, by clientgo.NewInformerFunc(options).
//
// Handlers, indexes, transforms and watch error handlers stay as they are.
// SharedIndexInformer says what differs; its options (NewInformerWithOptions) are all those
// of this library. As in client-go, the first state is streamed unless the source says
// that it cannot; client-go's feature gate WatchListClient has no say here, but
// ReflectorOptions.Strategy has. An informer, an indexer or a lister that exists already is
// presented by SharedIndexInformer, Indexer and GenericLister. An informer of this library
// that is to have handlers that were written for client-go takes them through
// ResourceEventHandler.
//
// # Sources
//
// With a config, wherever it comes from:
//
//	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig) // or rest.InClusterConfig()
//	...
//	source, err := clientgo.NewSource(config, kubeapi.Options{
//		Resource:   corev1.SchemeGroupVersion.WithResource("pods"),
//		ObjectType: &corev1.Pod{},
//	})
//
// or with a client that exists, whose connections and rate limiter are then shared:
//
//	source, err := clientgo.NewSourceForClient(clientset.CoreV1().RESTClient(), kubeapi.Options{
//		Resource:   schema.GroupVersionResource{Resource: "pods"},
//		ObjectType: &corev1.Pod{},
//	})
//
// What comes back is a *kubeapi.ListerWatcher. Its documentation says what lists and
// watches answer, and what their errors are: those of apimachinery, so that
// errors.IsForbidden and the like work. The mirror is made of it as of any source:
//
//	controller := cache.New(&cache.Config{ListerWatcher: source, Store: indexer})
//
// Without an ObjectType the objects are *unstructured.Unstructured, of any resource;
// with a *metav1.PartialObjectMetadata their metadata alone is asked for.
//
// # Fields by name
//
// kubeapi.Options.Fields names the fields that objects are to have; all others are dropped
// before they are decoded. It is an option of both kinds of sources here, and so of each
// informer that is made of one, client-go's own and those of generated factories included:
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
// NewListWatchFromClient has no such option, because there client-go's codecs decode. What
// such objects lack, and what keeps them from being written back, is in the documentation
// of package kubeapi.
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
// Not used: Timeout, because client-go's applies to a whole request and would cut every
// watch (bound lists with a context; silent ones end by themselves, see
// kubeapi.Options.StallTimeout); APIPath and GroupVersion, because paths are made of
// Options.Resource (/api/VERSION of the core API, /apis/GROUP/VERSION of the others);
// NegotiatedSerializer, because kubeapi decodes.
//
// # What differs from client-go's clients
//
//   - No client-side rate limit unless the config asks for one: a QPS of 0 is none here,
//     and 5 requests a second in client-go. A reflector limits itself to a few requests
//     a minute. Several sources share a limit only through one RateLimiter. A client's
//     own limiter, in NewSourceForClient, is used as it is.
//   - The limiter is waited for in the transport, before each request and again before
//     each redirect that is followed. To kubeapi that is time in which the server does
//     not answer: a list that waits for longer than Options.StallTimeout, by default 2
//     minutes, fails with kubeapi.ErrStalled. A limiter that may take so long needs a
//     longer StallTimeout. A watch waits for as long as its context allows.
//   - A request is sent once. client-go repeats refused ones, up to ten times, after
//     the time that the server named; here the reflector sees the refusal, reports it,
//     and waits as long before it asks again.
//   - Protobuf is asked for wherever the Go type can be decoded from it, unless the config
//     or the options name something else.
//   - CBOR is asked for if the config names it, whatever client-go's feature gates say.
//   - Redirects to another scheme, host or port are errors, and so are answers that are
//     not of the API: login pages, Tables.
//   - client-go's metrics of requests and rate limiters hear nothing; what its transports
//     and exec plugins count is counted.
//   - A handler set by rest.SetDefaultWarningHandler cannot be found; set
//     Options.OnWarning.
//
// # Connections
//
// They are client-go's to keep: configs with the same TLS settings share a transport,
// and over HTTP/2 that is a single connection for any number of sources. It cannot compare
// functions, so that a config with Dial or Proxy gets connections of its own for each
// source. To share those, make one REST client and several sources of it. For a client
// certificate in a file client-go has a goroutine that looks for a new one, until the
// transport is garbage.
//
// # client-go's own informers
//
// A source is a ListerWatcher to them as well: cache.NewSharedIndexInformer of client-go
// takes it. They get whole lists, not items, and they do not know
// *kubeapi.UndecodableObject, which stands for an object that could not be decoded. From a
// watch they drop it with a line in the log; from a list it comes into their store, and
// to their handlers, like any other. Give them a transform that returns its DecodeError:
// then the list fails and is repeated, as it would be with their own clients.
//
// A transform does not help with deletions. A DELETED event whose object could not be
// decoded is dropped by client-go's reflector before any transform, because its type is
// not the expected one, and the watch continues after it: the informer's store keeps the
// object until the next list, which may be days away, and no handler is notified
// of its deletion. (An event that may have been damaged ends the watch first: see package kubeapi.)
//
// The reflectors of this library quarantine such an object, report it, and continue; they
// delete a deleted object, as long as its name can be read.
package clientgo
