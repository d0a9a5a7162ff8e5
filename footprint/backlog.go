package footprint

import (
	"reflect"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

// mergedEntry is the memory of a merged change in addition to its record: its place in a list and
// in a map.
const mergedEntry = 3*wordSize + 2*(4*wordSize+wordSize)

// backlogBytes estimates the memory of the changes that wait for handlers. Handlers that do not
// merge read the same changes.
func backlogBytes(handlers []cache.HandlerStatus) int64 {
	record := int64(reflect.TypeFor[eventlog.Record[table.Key]]().Size())
	longest := 0
	merged := int64(0)
	for _, handler := range handlers {
		if handler.Merging {
			merged += int64(handler.Backlog) * (record + mergedEntry)
			continue
		}
		longest = max(longest, handler.Backlog)
	}
	return int64(longest)*record + merged
}
