package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/apiclient"
)

// ListerWatcher lists and watches one resource of a Kubernetes-style API. It stores no objects. All methods may be
// called concurrently.
type ListerWatcher struct {
	collection collection
	resource   schema.GroupResource
	namespace  string // the only namespace; empty for all namespaces or a resource without namespaces
	client     *apiclient.Client

	target       target
	managed      managedFields
	lastRead     atomic.Int64 // see notedBody
	encodings    encodings
	limits       Limits
	version      schema.GroupVersion
	count        objectCount
	doubts       doubts
	uncompressed bool
	stallTimeout time.Duration
	warnings     *warnings
}

// New validates the options and returns a ListerWatcher. It sends nothing. The error wraps ErrInvalidOptions and names
// the field.
func New(options Options) (*ListerWatcher, error) {
	base, err := options.validated()
	if err != nil {
		return nil, err
	}
	into, err := targetOf(options.ObjectType)
	if err != nil {
		return nil, invalid("ObjectType", err)
	}
	if into.projection, err = projectionOf(options.Fields, into); err != nil {
		return nil, invalid("Fields", err)
	}
	offered, err := encodingsFor(options.Encodings, into)
	if err != nil {
		return nil, invalid("Encodings", err)
	}
	limits, err := options.Limits.completed()
	if err != nil {
		return nil, invalid("Limits", err)
	}
	lw := &ListerWatcher{
		collection:   newCollection(base, options),
		resource:     options.Resource.GroupResource(),
		namespace:    options.Namespace,
		version:      options.Resource.GroupVersion(),
		client:       apiclient.New(options.HTTPClient, options.UserAgent, options.Authorize),
		target:       into,
		encodings:    offered,
		limits:       limits,
		uncompressed: options.DisableCompression,
		stallTimeout: options.StallTimeout,
	}
	lw.managed.kept = options.KeepManagedFields || into.projection.names("metadata.managedFields")
	lw.doubts.seed = maphash.MakeSeed()
	lw.warnings = newWarnings(lw.collection.String(), options.OnWarning)
	if lw.stallTimeout == 0 {
		lw.stallTimeout = defaultStallTimeout
	}
	return lw, nil
}

// IsWatchListSemanticsUnSupported returns false: a reflector tries streaming lists, and the server may refuse them.
func (lw *ListerWatcher) IsWatchListSemanticsUnSupported() bool { return false }

// TypeDescription returns group, version and name of the resource, such as "v1 pods".
func (lw *ListerWatcher) TypeDescription() string {
	return lw.version.String() + " " + lw.resource.Resource
}

// send makes one request. It returns the answer when the response headers have arrived and announce a readable body.
// With an error, nothing is left open.
func (lw *ListerWatcher) send(ctx context.Context, v verb, options metav1.ListOptions) (*answer, error) {
	target, err := lw.collection.request(v, options)
	if err != nil {
		return nil, lw.collection.failure(v, err)
	}
	sendCtx, sent := apiclient.Recorded(ctx)
	sendCtx, cancel := context.WithCancel(sendCtx)
	var patience time.Duration // zero for a watch, which may be silent for any time
	if v == verbList {
		patience = lw.stallTimeout
	}
	a := &answer{ctx: sendCtx, cancel: cancel, stall: newStall(patience, cancel), sent: sent, lastRead: &lw.lastRead}
	open := false
	// Release even if a function of the caller panics.
	defer func() {
		if !open {
			a.release()
		}
	}()
	response, err := lw.roundTrip(a, v, target)
	if err != nil {
		return nil, lw.failed(ctx, a, v, err)
	}
	a.hold(response)
	if response.StatusCode == http.StatusNotAcceptable && lw.managed.refuse() {
		a.release()
		return lw.send(ctx, v, options)
	}
	lw.warnings.note(ctx, response.Header, sent)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		err = lw.refusal(v, a)
	} else if a.encoding, err = lw.encodings.readable(a); err != nil {
		err = lw.collection.failure(v, err)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = lw.failed(ctx, a, v, err)
		}
		return nil, err
	}
	open = true
	lw.managed.answered()
	return a, nil
}

func (lw *ListerWatcher) roundTrip(a *answer, v verb, target string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(a.ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", lw.encodings.accept(v, lw.target.metadataOnly(), lw.managed.requested()))
	if v == verbWatch || lw.uncompressed {
		// Otherwise the transport requests gzip. In a watch compression would delay events, because a compressor
		// buffers them.
		request.Header.Set("Accept-Encoding", "identity")
	}
	if err := lw.client.Prepare(request); err != nil {
		return nil, err
	}
	// The time for Authorize does not count as a stall of the server.
	a.stall.waiting()
	return lw.client.Do(request)
}

// failed turns an error into the error of the call. If the context ended, that is the cause; else, if the request
// stalled, the stall is; the transport's error comes last.
func (lw *ListerWatcher) failed(ctx context.Context, a *answer, v verb, err error) error {
	switch ended, stalled := ctx.Err(), a.stall.fired(); {
	case ended != nil:
		err = ended
	case stalled != nil:
		err = stalled
	default:
		if errors.As(err, new(streamReset)) && !errors.Is(err, errLost) {
			err = fmt.Errorf("%w: %w", errLost, err)
		}
		err = a.secrets().CleanError(err)
	}
	return lw.collection.failure(v, err)
}
