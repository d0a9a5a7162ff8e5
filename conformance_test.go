package cache

import "github.com/watchmirror/cache/kubeapi"

// What the types of this package implement.
var (
	_ Snapshotter = (*cache)(nil)
	_ Snapshotter = (*threadSafeMap)(nil)
	_ Snapshotter = (*sharedIndexInformer)(nil)

	_ Indexer                = (*cache)(nil)
	_ TransformingStore      = (*cache)(nil)
	_ Replacer               = (*cache)(nil)
	_ ResourceVersionUpdater = (*cache)(nil)
	_ changeAccepter         = (*cache)(nil)

	_ QueueWithBatch         = (*DeltaFIFO)(nil)
	_ TransformingStore      = (*DeltaFIFO)(nil)
	_ DoneChecker            = (*DeltaFIFO)(nil)
	_ Replacer               = (*DeltaFIFO)(nil)
	_ ResourceVersionUpdater = (*DeltaFIFO)(nil)
	_ eventChecker           = (*DeltaFIFO)(nil)

	_ Replacer       = (*intake)(nil)
	_ changeAccepter = (*intake)(nil)

	_ Controller     = (*Mirror)(nil)
	_ StatusReporter = (*Mirror)(nil)

	_ ListerWatcher            = (*ListWatch)(nil)
	_ ListerWatcherWithContext = (*ListWatch)(nil)
)

// Package kubeapi does not import this one: that the two fit is seen here.
var (
	_ ItemLister        = (*kubeapi.ListerWatcher)(nil)
	_ UndecodableObject = (*kubeapi.UndecodableObject)(nil)
)
