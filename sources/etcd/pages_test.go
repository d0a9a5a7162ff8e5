package etcd

import "testing"

// Fails if a check of the version that takes too long makes the next list request its keys one by
// one.
func TestAFailedPageOfOneKeyLeavesTheSizeOfOthers(t *testing.T) {
	size := newPageSize()
	if size.halve(1) {
		t.Error("a page of one key cannot be smaller")
	}
	if size.get() != maxPageSize {
		t.Errorf("the size of pages is %d", size.get())
	}
	if !size.halve(2) || size.get() != 1 {
		t.Errorf("the size after a failed page of two keys is %d", size.get())
	}
}
