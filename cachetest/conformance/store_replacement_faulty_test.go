package conformance

import (
	"context"

	"github.com/watchmirror/cache"
)

// Stores with one fault in their Replacement each.

type commitsAtNoVersion struct{ goodStore }

func (s commitsAtNoVersion) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	r := s.goodStore.BeginReplace(options)
	return reworked{Replacement: r, commit: func(ctx context.Context, _ string) error { return r.Commit(ctx, "") }}
}

type losesFirstPart struct{ goodStore }

func (s losesFirstPart) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	first := true
	return partsOf(s.goodStore.BeginReplace(options), func(part *cache.ReplacementPart) {
		if first {
			part.Items = nil
		}
		first = false
	})
}

type alwaysStaged struct{ goodStore }

func (s alwaysStaged) BeginReplace(cache.ReplaceOptions) cache.Replacement {
	return s.goodStore.BeginReplace(cache.ReplaceOptions{Staged: true})
}

type neverStaged struct{ goodStore }

func (s neverStaged) BeginReplace(cache.ReplaceOptions) cache.Replacement {
	return s.goodStore.BeginReplace(cache.ReplaceOptions{})
}

type showsParts struct{ goodStore }

func (s showsParts) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	return partsOf(s.goodStore.BeginReplace(options), func(part *cache.ReplacementPart) {
		for _, obj := range part.Items {
			_ = s.Update(obj)
		}
	})
}

type commitsAborted struct{ goodStore }

func (s commitsAborted) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	r := s.goodStore.BeginReplace(options)
	return reworked{Replacement: r, abort: func() { _ = r.Commit(context.Background(), "9") }}
}

type keepsNothing struct{ goodStore }

func (s keepsNothing) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	return partsOf(s.goodStore.BeginReplace(options), func(part *cache.ReplacementPart) { part.Retain = nil })
}

type takesNothingBack struct{ goodStore }

func (s takesNothingBack) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	return partsOf(s.goodStore.BeginReplace(options), func(part *cache.ReplacementPart) { part.Deleted = nil })
}

type rejectsNothing struct{ goodStore }

func (s rejectsNothing) BeginReplace(options cache.ReplaceOptions) cache.Replacement {
	r := s.goodStore.BeginReplace(options)
	return reworked{Replacement: r, part: func(ctx context.Context, part cache.ReplacementPart) ([]*cache.ObjectError, error) {
		_, err := r.Add(ctx, part)
		return nil, err
	}}
}

// reworked is a replacement whose methods are replaced where fields are set.
type reworked struct {
	cache.Replacement
	part   func(context.Context, cache.ReplacementPart) ([]*cache.ObjectError, error)
	commit func(context.Context, string) error
	abort  func()
}

func partsOf(r cache.Replacement, change func(*cache.ReplacementPart)) cache.Replacement {
	return reworked{Replacement: r, part: func(ctx context.Context, part cache.ReplacementPart) ([]*cache.ObjectError, error) {
		change(&part)
		return r.Add(ctx, part)
	}}
}

func (r reworked) Add(ctx context.Context, part cache.ReplacementPart) ([]*cache.ObjectError, error) {
	if r.part != nil {
		return r.part(ctx, part)
	}
	return r.Replacement.Add(ctx, part)
}

func (r reworked) Commit(ctx context.Context, version string) error {
	if r.commit != nil {
		return r.commit(ctx, version)
	}
	return r.Replacement.Commit(ctx, version)
}

func (r reworked) Abort() {
	if r.abort != nil {
		r.abort()
		return
	}
	r.Replacement.Abort()
}
