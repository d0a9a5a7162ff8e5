package cache

import "context"

// informerView is what GetController of an informer returns.
type informerView struct{ informer *sharedIndexInformer }

// Run does nothing: the informer is run itself.
func (v informerView) Run(<-chan struct{}) {}

// RunWithContext does nothing.
func (v informerView) RunWithContext(context.Context) {}

// HasSynced is the informer's.
func (v informerView) HasSynced() bool { return v.informer.HasSynced() }

// HasSyncedChecker is the informer's.
func (v informerView) HasSyncedChecker() DoneChecker { return v.informer.HasSyncedChecker() }

// LastSyncResourceVersion is the informer's.
func (v informerView) LastSyncResourceVersion() string { return v.informer.LastSyncResourceVersion() }

// Status implements StatusReporter.
func (v informerView) Status() Status { return v.informer.Status() }
