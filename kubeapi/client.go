package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/apiclient"
)

// ListerWatcher lists and watches one resource of a Kubernetes-style API. It stores no objects. All
// methods may be called concurrently.
type ListerWatcher struct {
	collection collection
	resource   schema.GroupResource
	// namespace is the only one, empty for all namespaces or a resource without namespaces.
	namespace string
	client    *apiclient.Client

	target             target
	managedFields      managedFields
	lastRead           atomic.Int64 // when bytes last arrived, in nanoseconds since 1970
	encodings          encodings
	limits             Limits
	version            schema.GroupVersion
	objectCount        objectCount
	suspects           suspects
	knownType          knownType
	disableCompression bool
	stallTimeout       time.Duration
	warnings           *warnings
	// discardedAt is when a dead connection was discarded, or nil if a request has been answered or
	// repeated since.
	discardedAt atomic.Pointer[time.Time]
	// sourceStatuses are the results of SourceStatus.
	sourceStatuses map[string]map[string]string
}

// New validates the options and returns a ListerWatcher. It sends nothing. The error wraps
// ErrInvalidOptions and names the field.
func New(options Options) (*ListerWatcher, error) {
	base, err := options.validate()
	if err != nil {
		return nil, err
	}
	into, err := targetFor(options.ObjectType)
	if err != nil {
		return nil, invalidOption("ObjectType", err)
	}
	into.resource = options.Resource.Resource
	into.projection, err = projectionOf(options.Fields, into)
	if err != nil {
		return nil, invalidOption("Fields", err)
	}
	offered, err := encodingsFor(options.Encodings, into)
	if err != nil {
		return nil, invalidOption("Encodings", err)
	}
	limits, err := options.Limits.withDefaults()
	if err != nil {
		return nil, invalidOption("Limits", err)
	}
	lw := &ListerWatcher{
		collection:         newCollection(base, options),
		resource:           options.Resource.GroupResource(),
		namespace:          options.Namespace,
		version:            options.Resource.GroupVersion(),
		client:             apiclient.New(options.HTTPClient, options.UserAgent, options.Authorize),
		target:             into,
		encodings:          offered,
		limits:             limits,
		disableCompression: options.DisableCompression,
		stallTimeout:       options.StallTimeout,
	}
	lw.managedFields.kept = options.KeepManagedFields ||
		into.projection.overlaps("metadata.managedFields")
	lw.sourceStatuses = sourceStatusesOf(lw.collection)
	lw.suspects.seed = maphash.MakeSeed()
	lw.warnings = newWarnings(lw.collection.String(), options.OnWarning)
	if lw.stallTimeout == 0 {
		lw.stallTimeout = defaultStallTimeout
	}
	return lw, nil
}

// IsWatchListSemanticsUnSupported returns false: a reflector tries streaming lists, and the server
// may refuse them.
func (lw *ListerWatcher) IsWatchListSemanticsUnSupported() bool { return false }

// TypeDescription returns group, version and name of the resource, such as "v1 pods".
func (lw *ListerWatcher) TypeDescription() string {
	return lw.version.String() + " " + lw.resource.Resource
}

// send makes one request. It returns when the response headers have arrived and announce a body
// that can be decoded. After an error, nothing is left open.
func (lw *ListerWatcher) send(
	ctx context.Context, v verb, options metav1.ListOptions,
) (*response, error) {
	url, err := lw.collection.requestURL(v, options)
	if err != nil {
		return nil, lw.collection.wrapError(v, err)
	}
	r := lw.newResponse(ctx, v, options)
	isAccepted := false
	defer func() { // also if a function of the caller panics
		if !isAccepted {
			r.release()
		}
	}()
	httpResponse, err := lw.roundTrip(r, v, url)
	if err != nil {
		mayRepeat := lw.takeDiscard()
		if mayRepeat && r.ctx.Err() == nil {
			r.release()
			return lw.send(ctx, v, options)
		}
		return nil, lw.callError(ctx, r, v, err)
	}
	lw.discardedAt.Store(nil)
	r.setResponse(httpResponse)
	if httpResponse.StatusCode == http.StatusNotAcceptable && lw.managedFields.recordRefusal() {
		r.release()
		return lw.send(ctx, v, options)
	}
	lw.warnings.reportNew(ctx, httpResponse.Header, r.sent)
	if err := lw.checkResponse(r, v); err != nil {
		if ctx.Err() != nil {
			err = lw.callError(ctx, r, v, err)
		}
		return nil, err
	}
	isAccepted = true
	lw.managedFields.responseBegun()
	return r, nil
}

// newResponse returns the response of a call that is not sent yet.
func (lw *ListerWatcher) newResponse(
	ctx context.Context, v verb, options metav1.ListOptions,
) *response {
	ctx, sent := apiclient.Recorded(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var stallTimeout time.Duration // zero for a watch, which may be silent for any time
	if v == verbList {
		stallTimeout = lw.stallTimeout
	}
	return &response{
		ctx:     ctx,
		cancel:  cancel,
		stall:   newStallTimer(stallTimeout, cancel),
		sent:    sent,
		source:  lw,
		expects: expectationOf(v, options),
	}
}

// checkResponse returns the error of a response without a body that can be decoded. Otherwise it
// sets the body's encoding.
func (lw *ListerWatcher) checkResponse(r *response, v verb) error {
	if r.StatusCode < 200 || r.StatusCode > 299 {
		return lw.statusError(v, r)
	}
	encoding, err := lw.encodings.forResponse(r)
	if err != nil {
		return lw.collection.wrapError(v, err)
	}
	r.encoding = encoding
	return nil
}

func (lw *ListerWatcher) roundTrip(r *response, v verb, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(r.use.traced(r.ctx), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(
		"Accept", lw.encodings.accept(v, lw.target.metadataOnly(), lw.managedFields.requestsDrop()))
	if v == verbWatch || lw.disableCompression {
		// Otherwise the transport requests gzip. In a watch compression would delay events, because
		// a compressor buffers them.
		request.Header.Set("Accept-Encoding", "identity")
	}
	if err := lw.client.Prepare(request); err != nil {
		return nil, err
	}
	// The wait begins after Authorize, whose time does not count as a stall of the server.
	r.stall.beginWait()
	r.sentAt = time.Now()
	return lw.client.Do(request)
}

// callError returns the error of the call for err, with the first that applies as its cause: the
// context's error, a stall, or err without secrets.
func (lw *ListerWatcher) callError(ctx context.Context, r *response, v verb, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return lw.collection.wrapError(v, ctxErr)
	}
	if stallErr := r.stall.err(); stallErr != nil {
		return lw.collection.wrapError(v, stallErr)
	}
	if isConnectionLost(err) && !errors.Is(err, errConnectionLost) {
		err = fmt.Errorf("%w: %w", errConnectionLost, err)
	}
	return lw.collection.wrapError(v, r.secrets().CleanError(err))
}

// isConnectionLost reports whether an open connection or stream failed, before or after the headers
// of a response.
func isConnectionLost(err error) bool {
	if errors.As(err, new(streamReset)) {
		return true
	}
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && (operation.Op == "read" || operation.Op == "write")
}
