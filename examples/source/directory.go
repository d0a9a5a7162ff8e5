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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

const (
	// scanInterval is how often a watch reads the directory. A backend that can notify would wake it instead.
	scanInterval = 200 * time.Millisecond
	// keptChanges is the length of the history. A watch that begins before it has expired.
	keptChanges = 100
)

// Directory is a source: each file of a directory is an object. It gives each change that it finds the next version and
// keeps the last changes, so that a watch can continue where a list ended.
type Directory struct {
	path string

	mu      sync.Mutex // guards the state that the directory had when it was last read
	version uint64
	files   map[string]*File
	history []watch.Event // the last changes, one version each; the last one led to version
}

// NewDirectory makes the source. It starts nothing.
func NewDirectory(path string) *Directory { return &Directory{path: path, version: 1} }

// ListWithContext reads the directory: its answer is no older than the request. A limit is ignored.
func (d *Directory) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := refuse(options); err != nil {
		return nil, err
	}
	if _, _, err := d.changes(options.ResourceVersion); err != nil && !apierrors.IsResourceExpired(err) {
		return nil, err // a list may be newer than the requested version
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(d.version, 10)}}
	for _, file := range d.files {
		list.Items = append(list.Items, runtime.RawExtension{Object: file.DeepCopyObject()})
	}
	return list, nil
}

// WatchWithContext delivers every change after a version.
func (d *Directory) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := refuse(options); err != nil {
		return nil, err
	}
	if _, _, err := d.changes(options.ResourceVersion); err != nil {
		return nil, err
	}
	w := &dirWatch{results: make(chan watch.Event), done: make(chan struct{})}
	ctx, w.cancel = context.WithTimeout(ctx, time.Duration(ptr.Deref(options.TimeoutSeconds, 3600))*time.Second)
	go w.run(ctx, d, options.ResourceVersion)
	return w, nil
}

// refuse refuses at once what this source cannot do: a reflector then lists.
func refuse(options metav1.ListOptions) error {
	switch {
	case options.LabelSelector != "" || options.FieldSelector != "":
		return apierrors.NewBadRequest("this source knows no selectors")
	case options.SendInitialEvents != nil:
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", field.ErrorList{
			field.Forbidden(field.NewPath("sendInitialEvents"), "this source does not stream lists"),
		})
	}
	return nil
}

// dirWatch is one watch.
type dirWatch struct {
	results chan watch.Event
	cancel  context.CancelFunc
	done    chan struct{}
}

func (w *dirWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch and waits for its goroutine.
func (w *dirWatch) Stop() {
	w.cancel()
	<-w.done
}

// run sends the changes after version until ctx ends or the directory cannot be read: the next request for a watch
// returns that error.
func (w *dirWatch) run(ctx context.Context, d *Directory, version string) {
	defer close(w.done)
	defer close(w.results)
	defer w.cancel()
	for ctx.Err() == nil {
		events, next, err := d.changes(version)
		if err != nil {
			return
		}
		for _, event := range events {
			event.Object = event.Object.DeepCopyObject() // each watch has its own
			select {
			case w.results <- event:
			case <-ctx.Done():
				return
			}
		}
		version = next
		select {
		case <-time.After(scanInterval):
		case <-ctx.Done():
		}
	}
}

// changes reads the directory and returns the changes after a version, and the present version. No version, or "0", is
// one before the history.
func (d *Directory) changes(version string) (events []watch.Event, present string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.scanLocked(); err != nil {
		return nil, "", err
	}
	from, err := strconv.ParseUint(cmp.Or(version, "0"), 10, 64)
	switch oldest := d.version - uint64(len(d.history)); {
	case err != nil:
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is no decimal number", version))
	case from < oldest:
		return nil, "", apierrors.NewResourceExpired(fmt.Sprintf("resource version %d is older than %d", from, oldest))
	case from > d.version: // of another process
		err := apierrors.NewTimeoutError(fmt.Sprintf("resource version %d is newer than %d", from, d.version), 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, "", err
	}
	return d.history[uint64(len(d.history))-(d.version-from):], strconv.FormatUint(d.version, 10), nil
}

// scanLocked compares the files with the last state. If one cannot be read, nothing changes.
func (d *Directory) scanLocked() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	files := map[string]*File{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(d.path, entry.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed since
		} else if err != nil {
			return err
		}
		files[entry.Name()] = &File{ObjectMeta: metav1.ObjectMeta{Name: entry.Name()}, Content: string(content)}
	}
	for name, known := range d.files {
		if files[name] == nil { // a deletion has the last state, at a version of its own
			d.recordLocked(watch.Deleted, known.DeepCopyObject().(*File))
		}
	}
	for name, file := range files {
		switch known := d.files[name]; {
		case known == nil: // UID and version let a relist recognize an unchanged object
			file.UID = types.UID(fmt.Sprintf("%s-%d", name, d.version+1))
			d.recordLocked(watch.Added, file)
		case known.Content == file.Content:
			files[name] = known
		default:
			file.UID = known.UID
			d.recordLocked(watch.Modified, file)
		}
	}
	d.files = files
	return nil
}

// recordLocked gives a change the next version.
func (d *Directory) recordLocked(change watch.EventType, file *File) {
	d.version++
	file.ResourceVersion = strconv.FormatUint(d.version, 10)
	history := append(d.history, watch.Event{Type: change, Object: file})
	d.history = history[max(0, len(history)-keptChanges):]
}

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
