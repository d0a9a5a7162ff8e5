package cachetest

import (
	"context"
	"fmt"
	"slices"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// List is ListWithContext without a context.
func (s *Source) List(opts metav1.ListOptions) (runtime.Object, error) {
	return s.list(context.Background(), "", opts)
}

// ListWithContext lists the whole source like a Kubernetes API server
// (https://kubernetes.io/docs/reference/using-api/api-concepts/):
//
//   - resource version "" or "0" returns the current content, and so does a reached version N with
//     the match NotOlderThan, or with neither a match nor a limit;
//   - N with the match Exact, or with a limit and no match, returns the state at N, or 410 Expired
//     if N is compacted;
//   - a future version fails at once with 504 Timeout and the cause ResourceVersionTooLarge;
//   - a limit makes pages of one consistent state, continued by an opaque token; an expired token
//     fails with 410 and a token for an inconsistent continuation;
//   - objects are sorted by namespace and name.
//
// It blocks only if the fault script says so; it then returns when ctx ends, unless the script
// ignores contexts.
func (s *Source) ListWithContext(
	ctx context.Context, opts metav1.ListOptions,
) (runtime.Object, error) {
	return s.list(ctx, "", opts)
}

// IsWatchListSemanticsUnSupported returns Options.WatchListUnsupported: false makes a reflector try
// a streaming list.
func (s *Source) IsWatchListSemanticsUnSupported() bool { return s.options.WatchListUnsupported }

// Namespace returns a view of one namespace, or of all if it is empty.
func (s *Source) Namespace(namespace string) *View {
	return &View{source: s, namespace: namespace}
}

// View is one namespace of a Source. Views share the source's versions, fault script and record of
// requests. To make only one namespace fail, for example with a Forbidden error, use
// View.FailRequests.
type View struct {
	source    *Source
	namespace string
}

// List is Source.List for the view's namespace.
func (v *View) List(opts metav1.ListOptions) (runtime.Object, error) {
	return v.source.list(context.Background(), v.namespace, opts)
}

// ListWithContext is Source.ListWithContext for the view's namespace.
func (v *View) ListWithContext(
	ctx context.Context, opts metav1.ListOptions,
) (runtime.Object, error) {
	return v.source.list(ctx, v.namespace, opts)
}

// Watch is Source.Watch for the view's namespace.
func (v *View) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return v.source.watch(context.Background(), v.namespace, opts)
}

// WatchWithContext is Source.WatchWithContext for the view's namespace.
func (v *View) WatchWithContext(
	ctx context.Context, opts metav1.ListOptions,
) (watch.Interface, error) {
	return v.source.watch(ctx, v.namespace, opts)
}

// FailRequests makes the next n requests (Forever: all) of the view's namespace fail with err; nil
// means ErrInternal. All views of the namespace count, and requests of the namespace to a Handler.
// Open watches continue. Heal, and that of the source, end it.
func (v *View) FailRequests(n int, err error) {
	v.source.plan("View.FailRequests", n != 0, func(f *faults, p *plan) {
		if f.namespaces == nil {
			f.namespaces = map[string]*script[error]{}
		}
		if f.namespaces[v.namespace] == nil {
			f.namespaces[v.namespace] = &script[error]{}
		}
		f.namespaces[v.namespace].add(n, scriptedError(err), p)
	})
}

// Heal ends the failures of FailRequests in the view's namespace.
func (v *View) Heal() {
	v.source.script(func(f *faults) { delete(f.namespaces, v.namespace) })
}

// IsWatchListSemanticsUnSupported is Source.IsWatchListSemanticsUnSupported.
func (v *View) IsWatchListSemanticsUnSupported() bool {
	return v.source.IsWatchListSemanticsUnSupported()
}

// listAnswer is the part of a list's result that the record keeps.
type listAnswer struct {
	items   int
	version string
}

func (s *Source) list(
	ctx context.Context, namespace string, opts metav1.ListOptions,
) (runtime.Object, error) {
	req := s.arrived(VerbList, namespace, opts)
	list, answer, err := s.answerList(ctx, namespace, opts)
	s.answered(req, answer, err)
	return list, err
}

func (s *Source) answerList(
	ctx context.Context, namespace string, opts metav1.ListOptions,
) (runtime.Object, listAnswer, error) {
	mangle, err := s.admitList(ctx, namespace, opts)
	if err != nil {
		return nil, listAnswer{}, err
	}
	if err := s.validate(opts, false); err != nil {
		return nil, listAnswer{}, err
	}
	sel, err := s.newSelection(namespace, opts)
	if err != nil {
		return nil, listAnswer{}, err
	}
	cut, err := s.stateFor(opts)
	if err != nil {
		return nil, listAnswer{}, err
	}
	if s.options.IgnoreLimitAtZero && opts.ResourceVersion == "0" && opts.Continue == "" {
		opts.Limit = 0
	}
	page := cut.page(sel, opts.Limit)
	list, err := s.newList(page.objects)
	if err != nil {
		return nil, listAnswer{}, apierrors.NewInternalError(fmt.Errorf("making the list: %w", err))
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, listAnswer{}, apierrors.NewInternalError(fmt.Errorf("making the list: %w", err))
	}
	answer := listAnswer{items: len(page.objects), version: formatVersion(cut.state.version)}
	accessor.SetResourceVersion(answer.version)
	accessor.SetContinue(page.next)
	accessor.SetRemainingItemCount(page.remaining)
	if sel.shard != "" {
		sel.setShardInfo(list)
	}
	if mangle != nil {
		list = mangle(list)
	}
	return list, answer, nil
}

// validate refuses invalid combinations of options by the rules of API servers.
func (s *Source) validate(opts metav1.ListOptions, watching bool) error {
	errs := validation.ValidateListOptions(&internalversion.ListOptions{
		Watch:                watching,
		ResourceVersion:      opts.ResourceVersion,
		ResourceVersionMatch: opts.ResourceVersionMatch,
		Continue:             opts.Continue,
		SendInitialEvents:    opts.SendInitialEvents,
	}, !s.options.NoWatchList)
	if watching && opts.SendInitialEvents != nil && *opts.SendInitialEvents &&
		!opts.AllowWatchBookmarks {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"),
			"without allowWatchBookmarks the end of the initial events could not be reported"))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(
		schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}

// place is the start of a page: after a key of a state.
type place struct {
	state *snapshot
	token continueToken // the next page's token, except for the key
	after key
}

// stateFor returns the state that a list shows.
func (s *Source) stateFor(opts metav1.ListOptions) (place, error) {
	if opts.Continue != "" {
		return s.continued(opts)
	}
	asked, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return place{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state, stale := s.faults.oldLists.take()
	switch {
	case stale:
	case asked > s.history.version:
		return place{}, ErrTooLargeResourceVersion(asked, s.history.version)
	case !wantsExact(opts, asked):
		state = s.history.snapshotAt(s.history.version)
	case asked < s.history.compacted:
		return place{}, errTooOld(asked, s.history.compacted)
	default:
		state = s.history.snapshotAt(asked)
	}
	return place{
		state: state,
		token: continueToken{Version: int64(state.version), Epoch: s.epoch, Page: 2},
	}, nil
}

// wantsExact reports whether a first page must be of exactly the requested version. By the table at
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list a limit
// means exact if a version is named without a match.
func wantsExact(opts metav1.ListOptions, asked uint64) bool {
	if asked == 0 {
		return false // no version, even if written with several digits
	}
	if opts.ResourceVersionMatch == "" {
		return opts.Limit > 0
	}
	return opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
}

// continued returns the state for a later page of a list.
func (s *Source) continued(opts metav1.ListOptions) (place, error) {
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return place{}, apierrors.NewBadRequest(
			"resourceVersion: specifying a resource version is not allowed when using continue")
	}
	token, err := decodeContinueToken(opts.Continue)
	if err != nil {
		return place{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.history.version
	switch {
	case token.Epoch != s.epoch:
		return place{}, token.expired(s.epoch)
	case token.Version == anyVersion:
	case uint64(token.Version) < s.history.compacted || uint64(token.Version) > s.history.version:
		return place{}, token.expired(s.epoch)
	default:
		version = uint64(token.Version)
	}
	next := continueToken{Version: int64(version), Epoch: s.epoch, Page: token.Page + 1}
	return place{state: s.history.snapshotAt(version), token: next, after: token.After}, nil
}

// page is one page: copies of the objects, and the token of the next page.
type page struct {
	objects   []runtime.Object
	next      string
	remaining *int64
}

// page returns the next page. It runs without the source's lock, since a state is immutable.
func (p place) page(sel selection, limit int64) page {
	keys, objects := p.within(sel.namespace)
	cut := page{objects: []runtime.Object{}}
	for i, obj := range objects {
		if !sel.matches(obj) {
			continue
		}
		if limit > 0 && int64(len(cut.objects)) == limit {
			// Another object matches, so there is a next page.
			p.token.After = keys[i-1]
			cut.next = p.token.encode()
			if !sel.byContent() {
				rest := int64(len(objects) - i)
				cut.remaining = &rest
			}
			return cut
		}
		cut.objects = append(cut.objects, obj.DeepCopyObject())
	}
	return cut
}

// within returns the part of the state after the place, in one namespace or all.
func (p place) within(namespace string) ([]key, []runtime.Object) {
	keys := p.state.keys
	from := 0
	to := len(keys)
	if namespace != "" {
		from = sort.Search(len(keys), func(i int) bool { return keys[i].Namespace >= namespace })
		to = sort.Search(len(keys), func(i int) bool { return keys[i].Namespace > namespace })
	}
	if p.after != (key{}) {
		i, found := slices.BinarySearchFunc(keys, p.after, compareKeys)
		if found {
			i++
		}
		from = min(max(from, i), to)
	}
	return keys[from:to], p.state.objects[from:to]
}
