package cache

import (
	"context"
	"errors"
)

// informerStore is what an informer's reflector feeds: the store, of which everything that is
// applied is told to the handlers before the call returns.
type informerStore struct {
	*cache
	informer *sharedIndexInformer
}

var (
	_ Replacer               = informerStore{}
	_ ResourceVersionUpdater = informerStore{}
	_ taker                  = informerStore{}
)

// takeChanges implements taker.
func (s informerStore) takeChanges(ctx context.Context, changes []change) (int, error) {
	inf := s.informer
	began := inf.meters.begin(inf.clock, len(changes))
	defer inf.meters.applied(inf.clock, began)
	return inf.intake.takeChanges(ctx, changes)
}

// HasSynced is the informer's.
func (s informerStore) HasSynced() bool { return s.informer.HasSynced() }

// BeginReplace implements Replacer.
func (s informerStore) BeginReplace(options ReplaceOptions) Replacement {
	return informerReplacement{s.informer.intake.beginReplace(options), s.informer}
}

// informerReplacement is a list on its way into an informer.
type informerReplacement struct {
	*storeReplacement
	informer *sharedIndexInformer
}

// Part takes some of the listed objects.
func (r informerReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	began := r.informer.meters.begin(r.informer.clock, len(part.Items)+len(part.Gone))
	defer r.informer.meters.applied(r.informer.clock, began)
	return r.storeReplacement.Part(ctx, part)
}

// Commit ends the list. At the end of the first one the handlers are told so.
func (r informerReplacement) Commit(ctx context.Context, version string) error {
	err := r.storeReplacement.Commit(ctx, version)
	if !errors.Is(err, errReplacementOver) {
		r.informer.tellSynced()
	}
	return err
}
