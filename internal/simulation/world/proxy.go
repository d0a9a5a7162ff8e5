package world

import (
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// Proxy is what stands between the mirrors and a server of theirs: a load balancer that ends
// watches (B27), and habits of servers that are no kube-apiserver: one that answers forgotten
// versions with nothing (B28), lists behind their items (B31) or without a version (B32), no
// watches at all, and namespaces that are forbidden. The taps carry it out, so that it is the same
// with and without HTTP.
type Proxy struct {
	mu sync.Mutex
	// limit is that of all watches; zero is none. limitChanged is closed when it changes.
	limit        watchLimit
	limitChanged chan struct{}
	// refusesWatches is true while the source can only be listed.
	refusesWatches bool
	// forgotten is the version below which watches are empty, and end after emptyFor.
	forgotten uint64
	emptyFor  time.Duration
	// behind is the number of next lists that are behind their items, by at most behindBy versions.
	behind   int
	behindBy uint64
	// versionless is the number of next lists without a version, and without items if isEmptied.
	versionless int
	isEmptied   bool
	// forbidden are the namespaces that only mirrors of all namespaces can read.
	forbidden map[string]bool

	// everBehind is true once a list was behind, everEnded once watches were ended cleanly.
	everBehind bool
	everEnded  bool
}

// watchLimit is when and how a proxy ends a watch.
type watchLimit struct {
	// after is the time of a watch or, if isIdle, of its silence; 0 is unlimited.
	after  time.Duration
	isIdle bool
	// isCut says that the connection is cut. Otherwise the response ends as usual.
	isCut bool
}

// limitWatches sets the limit of all watches that are open or opened later.
func (p *Proxy) limitWatches(s script.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = watchLimit{
		after:  s.For,
		isIdle: s.What == script.LimitIdleCut || s.What == script.LimitIdleEnd,
		isCut:  s.What == script.LimitIdleCut || s.What == script.LimitCut,
	}
	p.everEnded = p.everEnded || !p.limit.isCut && s.For > 0
	if p.limitChanged != nil {
		close(p.limitChanged)
	}
	p.limitChanged = nil
}

// currentLimit is the present limit of watches, and a channel that is closed once it has changed.
func (p *Proxy) currentLimit() (watchLimit, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limitChanged == nil {
		p.limitChanged = make(chan struct{})
	}
	return p.limit, p.limitChanged
}

// reached returns a channel that receives once a watch, or its silence, has reached the limit.
func (l watchLimit) reached(began time.Time) <-chan time.Time {
	if l.after <= 0 {
		return nil
	}
	return time.After(l.after - time.Since(began))
}

// forget makes watches from versions below one empty.
func (p *Proxy) forget(version uint64, emptyFor time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgotten = version
	p.emptyFor = emptyFor
}

// HasForgotten says whether the server has forgotten any version.
func (p *Proxy) HasForgotten() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forgotten > 0
}

// oldestKnown is the oldest version that the server has not forgotten.
func (p *Proxy) oldestKnown() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forgotten
}

// emptyWatch returns a watch that is empty because of its version, and its limit. It ends before
// half of its timeout: one that ends later is an ordinary one.
func (p *Proxy) emptyWatch(options metav1.ListOptions) (empty watch.Interface, limit watchLimit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	version, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	isStream := options.SendInitialEvents != nil
	if err != nil || isStream || version == 0 || version >= p.forgotten {
		return nil, watchLimit{}
	}
	const immediately = time.Nanosecond
	limit.after = max(p.emptyFor, immediately)
	if options.TimeoutSeconds != nil {
		timeout := time.Duration(*options.TimeoutSeconds) * time.Second
		limit.after = min(limit.after, timeout/3)
	}
	return watch.NewFake(), limit
}

// putBehind makes the next lists have versions behind their items.
func (p *Proxy) putBehind(lists int, by uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = lists
	p.behindBy = by
	p.everBehind = p.everBehind || lists > 0
}

// WasEverBehind says whether any list has been behind its items.
func (p *Proxy) WasEverBehind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.everBehind
}

// takeBehind returns by how many versions the next list is behind its items.
func (p *Proxy) takeBehind() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behind <= 0 {
		return 0
	}
	p.behind--
	return p.behindBy
}

// dropVersions makes the next lists have no version.
func (p *Proxy) dropVersions(lists int, isEmptied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versionless = lists
	p.isEmptied = isEmptied
}

// takeVersionless says whether the next list has no version, and no items either.
func (p *Proxy) takeVersionless() (isVersionless, isEmptied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.versionless <= 0 {
		return false, false
	}
	p.versionless--
	return true, p.isEmptied
}

// EndsWatches says whether it has ever ended watches cleanly.
func (p *Proxy) EndsWatches() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.everEnded
}

// refuseWatches refuses all watches as not allowed, or allows them. Open ones stay open.
func (p *Proxy) refuseWatches(isRefused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusesWatches = isRefused
}

// areWatchesRefused says whether the source can only be listed.
func (p *Proxy) areWatchesRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusesWatches
}

// errNotAllowed is the error of a watch of a source that can only be listed.
func errNotAllowed() error {
	return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "things"}, "watch")
}

// Forbid forbids a namespace, or allows all.
func (p *Proxy) Forbid(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forbidden == nil {
		p.forbidden = map[string]bool{}
	}
	if namespace == "" {
		clear(p.forbidden)
		return
	}
	p.forbidden[namespace] = true
}

// IsForbidden says whether a namespace is forbidden.
func (p *Proxy) IsForbidden(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forbidden[namespace]
}

// ForbidsAny says whether any namespace is forbidden.
func (p *Proxy) ForbidsAny() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.forbidden) > 0
}

// heal ends what ends. Versions stay forgotten, and forbidden namespaces are allowed later.
func (p *Proxy) heal() {
	p.limitWatches(script.Step{})
	p.refuseWatches(false)
	p.putBehind(0, 0)
	p.dropVersions(0, false)
}

// errForbidden is the error of a forbidden namespace.
func errForbidden() error {
	things := schema.GroupResource{Group: objectKind.Group, Resource: "things"}
	return apierrors.NewForbidden(things, "", ErrBad)
}

// IsForbidden says whether this tap's namespace is forbidden.
func (t *tap) isForbidden() bool {
	return t.namespace != "" && t.client.world.Proxy.IsForbidden(t.namespace)
}

// proxyList decides how the proxy changes a new list.
func (t *tap) proxyList(request *Request) {
	w := t.client.world
	if !request.List || request.Check || request.FirstPage != nil || request.Wrong {
		return
	}
	if t.listsHaveVersions && t.client.owner.HasSynced() {
		request.versionless, request.isEmptied = w.Proxy.takeVersionless()
	}
	canReplay := t.client.setup.Kind != script.KindForeign && !w.Regressed() && !w.willRestore
	if canReplay && !request.versionless {
		request.behind = w.Proxy.takeBehind()
	}
}

// listMeta returns the metadata of a page as the proxy passes it on. All pages of a list have the
// same version. One behind its items is not older than what the reflector has seen, like one that
// the server read before it read the items; and it does not replay deletions, which no client could
// tell from creations. The reflector may see the version of a page that is cut off later.
func (t *tap) listMeta(request *Request, page metav1.ListMeta) metav1.ListMeta {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.wholeList()
	if list.versionless {
		return metav1.ListMeta{}
	}
	version := numberOf(page.ResourceVersion)
	if list.behind > 0 && version > 0 {
		behind := version - min(list.behind, version-1)
		least := t.client.world.Proxy.oldestKnown()
		version = min(version, max(behind, t.newest, t.client.world.Truth.lastRemoval(), least))
		page.ResourceVersion = strconv.FormatUint(version, 10)
	}
	t.newest = max(t.newest, version)
	t.listsHaveVersions = t.listsHaveVersions || version != 0
	return page
}

// sawVersion notes a version that the reflector was sent by a watch.
func (t *tap) sawVersion(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest = max(t.newest, numberOf(version))
}
