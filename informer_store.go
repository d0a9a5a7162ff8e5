package cache

import "context"

// informerStore is what an informer's reflector feeds: the queue, of which everything is
// applied before the call returns.
type informerStore struct {
	*DeltaFIFO
	informer *sharedIndexInformer
}

var (
	_ Replacer               = informerStore{}
	_ ResourceVersionUpdater = informerStore{}
	_ eventTaker             = informerStore{}
	_ quarantiner            = informerStore{}
)

// takeEvent takes an object and its version. See eventTaker.
func (s informerStore) takeEvent(e event) error {
	defer s.informer.applyPending()
	return s.DeltaFIFO.takeEvent(e)
}

// UpdateResourceVersion takes a version that came without an object.
func (s informerStore) UpdateResourceVersion(version string) {
	defer s.informer.applyPending()
	s.DeltaFIFO.UpdateResourceVersion(version)
}

// Resync does nothing: each handler's listener resyncs when it is due.
func (s informerStore) Resync() error { return nil }

// LastStoreSyncResourceVersion is the applied version.
func (s informerStore) LastStoreSyncResourceVersion() string {
	return s.informer.LastSyncResourceVersion()
}

// BeginReplace implements Replacer.
func (s informerStore) BeginReplace(options ReplaceOptions) Replacement {
	return informerReplacement{s.DeltaFIFO.BeginReplace(options).(*queueReplacement), s.informer}
}

// informerReplacement is a list on its way into an informer. No part of it waits: what
// an earlier one brought has been applied.
type informerReplacement struct {
	*queueReplacement
	informer *sharedIndexInformer
}

var _ disowner = informerReplacement{}

func (r informerReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	defer r.informer.applyPending()
	return r.queueReplacement.Part(ctx, part)
}

func (r informerReplacement) Commit(ctx context.Context, version string) error {
	defer r.informer.applyPending()
	return r.queueReplacement.Commit(ctx, version)
}
