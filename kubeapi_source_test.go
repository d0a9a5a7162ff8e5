package cache

import (
	"github.com/watchmirror/cache/kubeapi"
)

// Package kubeapi does not import this one: that the two fit is seen here.
var (
	_ ItemLister = (*kubeapi.ListerWatcher)(nil)
	_ Undecoded  = (*kubeapi.UndecodedObject)(nil)
)
