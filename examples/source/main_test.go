package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest/conformance"
)

func TestTheDirectoryIsASource(t *testing.T) {
	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{Virtual: true, NoBookmarks: true, New: newRig, Mark: contentOf})
}

func contentOf(obj runtime.Object) string { return obj.(*File).Content }

// newRig makes a source, and functions that change its directory. They let the source read the
// directory between two changes, so that it finds each. It needs no bookmarks: only its own changes
// advance the version.
func newRig(t testing.TB) conformance.ListerWatcherRig {
	path := t.TempDir()
	source := &Directory{Path: path}
	put := func(name, content string) error {
		_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		return errors.Join(write(path, name, content), err)
	}
	remove := func(name string) error { return put(name, "") }
	return conformance.ListerWatcherRig{
		Source: source, Create: put, Update: put, Delete: remove,
		Compact: func() error {
			for range keptChanges/2 + 1 {
				if err := errors.Join(put("other", "x"), remove("other")); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// write replaces a file atomically by a rename, or removes it if content is empty.
func write(path, name, content string) error {
	if content == "" {
		return os.Remove(filepath.Join(path, name))
	}
	temporary := path + ".new"
	return errors.Join(os.WriteFile(temporary, []byte(content), 0o600), os.Rename(temporary, filepath.Join(path, name)))
}

func TestTheMirrorHasEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		assert.Equal(t, "colour is red\ncolour is blue\nfiles left: 0\n", out.String())
	})
}

func TestAFileThatCannotBeReadFailsTheSourceAndLosesNothing(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, write(path, "size", "7"))
		source := &Directory{Path: path}
		_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "2"})
		require.NoError(t, err)
		defer w.Stop()
		synctest.Wait() // until it has read the directory for the first time

		unreadable := filepath.Join(path, "directory")
		require.NoError(t, os.Mkdir(unreadable, 0o700))
		require.NoError(t, write(path, "size", "8"))
		_, err = source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.ErrorContains(t, err, "is a directory")
		_, open := <-w.ResultChan()
		require.False(t, open)
		_, err = source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "2"})
		require.ErrorContains(t, err, "is a directory")

		require.NoError(t, os.Remove(unreadable))
		again, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "2"})
		require.NoError(t, err)
		defer again.Stop()
		event := <-again.ResultChan()
		assert.Equal(t, watch.Modified, event.Type)
		assert.Equal(t, "8", event.Object.(*File).Content)
	})
}

func TestRequestsThatCannotBeAnsweredAreRefused(t *testing.T) {
	source := &Directory{Path: t.TempDir()}
	for version, cause := range map[string]cache.Cause{
		"9": cache.CauseVersionTooLarge, "0": cache.CauseExpired, "": cache.CauseExpired, "x": cache.CauseExpired,
	} {
		_, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version})
		assert.Equal(t, cause, cache.CauseOf(err), version)
	}
	_, err := source.WatchWithContext(t.Context(), metav1.ListOptions{LabelSelector: "a=b", ResourceVersion: "1"})
	assert.Equal(t, cache.CauseBadRequest, cache.CauseOf(err))
	_, err = source.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersion: "1"})
	assert.Equal(t, cache.CauseBadRequest, cache.CauseOf(err))
}
