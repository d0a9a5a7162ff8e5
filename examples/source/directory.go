package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// scanInterval is how often a watch reads the directory. A backend that can notify would wake it
// instead.
const scanInterval = 50 * time.Millisecond

// keptChanges is the length of the history. A watch that begins before it has expired.
const keptChanges = 100

// File is the object of a file.
type File struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Content string
}

// DeepCopyObject implements runtime.Object.
func (f *File) DeepCopyObject() runtime.Object {
	return &File{f.TypeMeta, *f.ObjectMeta.DeepCopy(), f.Content}
}

// Directory is a source: each file of a directory is an object. It gives each change that it finds
// the next version and keeps the last changes, so that a watch can continue where a list ended.
type Directory struct {
	Path string

	mu   sync.Mutex
	last state // when the directory was last read
}

// ListWithContext reads the directory: its answer is no older than the request. A limit is ignored.
func (d *Directory) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	now, _, err := d.read(options)
	if err != nil && !apierrors.IsResourceExpired(err) { // a list may be newer than the requested version
		return nil, err
	}
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(now.version, 10)}}
	for _, file := range now.files {
		list.Items = append(list.Items, runtime.RawExtension{Object: file.DeepCopyObject()})
	}
	return list, nil
}

// WatchWithContext delivers every change after a version.
func (d *Directory) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if _, _, err := d.read(options); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(ptr.Deref(options.TimeoutSeconds, 3600))*time.Second)
	w := &dirWatch{make(chan watch.Event), cancel}
	go w.run(ctx, d, options)
	return w, nil
}

// dirWatch is one watch.
type dirWatch struct {
	results chan watch.Event
	cancel  context.CancelFunc
}

func (w *dirWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch and waits for its goroutine, which closes the channel.
func (w *dirWatch) Stop() {
	w.cancel()
	for range w.results {
	}
}

// run sends the changes after a version until ctx ends or the directory cannot be read: the next
// request for a watch returns that error.
func (w *dirWatch) run(ctx context.Context, d *Directory, options metav1.ListOptions) {
	defer close(w.results)
	defer w.cancel()
	for ctx.Err() == nil {
		now, changes, err := d.read(options)
		if err != nil {
			return
		}
		for _, change := range changes {
			change.Object = change.Object.DeepCopyObject() // each watch has its own
			select {
			case w.results <- change:
			case <-ctx.Done():
				return
			}
		}
		options.ResourceVersion = strconv.FormatUint(now.version, 10)
		select {
		case <-time.After(scanInterval):
		case <-ctx.Done():
		}
	}
}

// state is a directory at a version. What it refers to is never changed.
type state struct {
	version uint64
	files   map[string]*File
	history []watch.Event // the last changes, one version each; the last one led to version
}

// read reads the directory and returns its state and the changes after the requested version. It
// refuses unsupported requests; a reflector then lists. A version that is 0 or not a number is not
// one of this source, and so has expired.
func (d *Directory) read(options metav1.ListOptions) (now state, changes []watch.Event, err error) {
	if options.LabelSelector != "" || options.FieldSelector != "" || options.SendInitialEvents != nil {
		return now, nil, apierrors.NewBadRequest("this source knows no selectors and streams no lists")
	}
	from, _ := strconv.ParseUint(options.ResourceVersion, 10, 64)
	switch now, err = d.scan(); {
	case err != nil:
	case from > now.version: // of another process
		tooLarge := apierrors.NewTimeoutError(fmt.Sprintf("resource version %d is newer than %d", from, now.version), 1)
		tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		err = tooLarge
	case now.version-from > uint64(len(now.history)):
		err = apierrors.NewResourceExpired(fmt.Sprintf("resource version %d is no longer known", from))
	default:
		changes = now.history[uint64(len(now.history))-(now.version-from):]
	}
	return now, changes, err
}

// scan compares the files with the last state. If one cannot be read, nothing changes.
func (d *Directory) scan() (state, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return state{}, err
	}
	next := state{max(1, d.last.version), map[string]*File{}, d.last.history} // "0" would mean any version
	for _, entry := range entries {
		name := entry.Name()
		content, err := os.ReadFile(filepath.Join(d.Path, name))
		switch known := d.last.files[name]; {
		case errors.Is(err, os.ErrNotExist): // removed since
		case err != nil:
			return state{}, err
		case known == nil:
			next.record(watch.Added, name, "", string(content))
		case known.Content != string(content):
			next.record(watch.Modified, name, known.UID, string(content))
		default:
			next.files[name] = known
		}
	}
	for name, known := range d.last.files {
		if next.files[name] == nil { // a deletion has the last state, at a version of its own
			next.record(watch.Deleted, name, known.UID, known.Content)
		}
	}
	d.last = next
	return next, nil
}

// record gives a change the next version, and a new file a UID: by both a relist recognizes an
// unchanged object.
func (s *state) record(change watch.EventType, name string, uid types.UID, content string) {
	s.version++
	version := strconv.FormatUint(s.version, 10)
	meta := metav1.ObjectMeta{Name: name, UID: cmp.Or(uid, types.UID(name+"-"+version)), ResourceVersion: version}
	file := &File{ObjectMeta: meta, Content: content}
	if change != watch.Deleted {
		s.files[name] = file
	}
	history := append(s.history, watch.Event{Type: change, Object: file})
	s.history = history[max(0, len(history)-keptChanges):]
}
