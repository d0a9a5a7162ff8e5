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

// The rest of a list with a limit is a small page. Fails if the size of pages doubles nine times
// after such a page took too long once.
func TestTheSizeOfPagesGrowsBackAtOnceAfterASmallPageHasFailed(t *testing.T) {
	size := newPageSize()
	acceptFull := func() {
		for range growAfter {
			size.accept(size.get(), int(size.get()))
		}
	}
	size.halve(3)
	if size.get() != 1 {
		t.Errorf("the size after a failed page of three keys is %d", size.get())
	}
	acceptFull()
	if size.get() != maxPageSize {
		t.Errorf("the size is %d after %d full pages", size.get(), growAfter)
	}

	size.halve(40)
	size.halve(20) // a full page, which shows that larger ones fail too
	acceptFull()
	if size.get() != 20 {
		t.Errorf("the size is %d after a full page of 20 keys had failed", size.get())
	}
}
