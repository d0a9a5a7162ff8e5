package cache_test

import (
	"testing/synctest"
	"time"
)

// pass lets virtual time pass and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
