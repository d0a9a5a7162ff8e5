package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// scanInterval is how often a watch reads the directory. A backend that can notify would wake it instead.
	scanInterval = 200 * time.Millisecond
	// keptChanges is the length of the history. A watch that begins before it has expired.
	keptChanges = 100
)

// Directory is a source: the settings of a directory. It gives each change that it finds the next version and keeps
// the last changes, so that a watch can continue where a list ended.
type Directory struct {
	path string
	// turn is a lock that a caller can cease to wait for. Its holder owns the state.
	turn  chan struct{}
	state state
}

// state is what the directory had when it was last read. Nothing that it refers to changes.
type state struct {
	version uint64
	files   map[string]file // by the object's name
	history []watch.Event   // the last changes: the last one led to version, and each to the next one
}

type file struct {
	content []byte
	setting *Setting
}

// NewDirectory makes the source. It starts nothing.
func NewDirectory(path string) *Directory {
	return &Directory{path: path, turn: make(chan struct{}, 1), state: state{version: 1}}
}

// List is ListWithContext without a context.
func (d *Directory) List(options metav1.ListOptions) (runtime.Object, error) {
	return d.ListWithContext(context.Background(), options)
}

// ListWithContext reads the directory: its answer is no older than the request. A limit is ignored.
func (d *Directory) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	now, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	// A list may be newer than it was asked for, and so at a version that has expired, but not older.
	if _, err := now.since(cmp.Or(options.ResourceVersion, "0")); err != nil && !apierrors.IsResourceExpired(err) {
		return nil, err
	}
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: format(now.version)}}
	for _, f := range now.files {
		list.Items = append(list.Items, runtime.RawExtension{Object: f.setting.DeepCopyObject()})
	}
	return list, nil
}

// Watch is WatchWithContext without a context.
func (d *Directory) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return d.WatchWithContext(context.Background(), options)
}

// WatchWithContext delivers every change after a version. It refuses at once what it cannot do, so that a reflector lists.
func (d *Directory) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil || options.LabelSelector != "" || options.FieldSelector != "" {
		return nil, apierrors.NewBadRequest("this source knows neither sendInitialEvents nor selectors")
	}
	w := &dirWatch{
		directory: d, version: cmp.Or(options.ResourceVersion, "0"), // which is before the history
		results: make(chan watch.Event), done: make(chan struct{}),
	}
	if _, err := w.next(ctx); err != nil {
		return nil, err
	}
	if seconds := options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		ctx, w.cancel = context.WithTimeout(ctx, time.Duration(*seconds)*time.Second)
	} else {
		ctx, w.cancel = context.WithCancel(ctx)
	}
	go w.run(ctx)
	return w, nil
}

// dirWatch is a watch that has sent everything up to version.
type dirWatch struct {
	directory *Directory
	version   string
	results   chan watch.Event
	cancel    context.CancelFunc
	done      chan struct{}
}

func (w *dirWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch and waits for its goroutine.
func (w *dirWatch) Stop() {
	w.cancel()
	<-w.done
}

// next reads the directory and returns the changes after the watch's version.
func (w *dirWatch) next(ctx context.Context) ([]watch.Event, error) {
	now, err := w.directory.read(ctx)
	if err != nil {
		return nil, err
	}
	return now.since(w.version)
}

func (w *dirWatch) run(ctx context.Context) {
	defer close(w.done)
	defer close(w.results) // without an Error event: a watch that ended in the normal course of things
	defer w.cancel()
	for {
		events, err := w.next(ctx)
		if err != nil {
			events = append(events, errorEvent(err))
		}
		for _, event := range events {
			if ctx.Err() != nil {
				return
			}
			copied := watch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()} // each watch has its own
			select {
			case w.results <- copied:
			case <-ctx.Done():
				return
			}
			if setting, ok := event.Object.(*Setting); ok {
				w.version = setting.ResourceVersion
			}
		}
		if err != nil {
			return
		}
		select {
		case <-time.After(scanInterval):
		case <-ctx.Done():
			return
		}
	}
}

// errorEvent ends a watch. A Status is all that it can carry.
func errorEvent(err error) watch.Event {
	status := apierrors.NewServiceUnavailable(err.Error()).Status()
	if own := apierrors.APIStatus(nil); errors.As(err, &own) {
		status = own.Status()
	}
	return watch.Event{Type: watch.Error, Object: &status}
}

// since returns the changes after a version.
func (s state) since(version string) ([]watch.Event, error) {
	from, err := strconv.ParseUint(version, 10, 64)
	oldest := s.version - uint64(len(s.history))
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q is no decimal number", version))
	case from < oldest:
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, oldest))
	case from > s.version: // of another process, perhaps
		err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", from, s.version), 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, err
	}
	return s.history[from-oldest:], nil
}

// read reads the directory and returns its state.
func (d *Directory) read(ctx context.Context) (state, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return state{}, ctx.Err()
	}
	now, err := d.scan()
	if err != nil {
		return state{}, fmt.Errorf("reading settings: %w", err)
	}
	d.state = now
	return now, nil
}

// scan compares the files with the last state. One that cannot be read fails all of it, and nothing has changed then.
func (d *Directory) scan() (state, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return state{}, err
	}
	next := state{version: d.state.version, files: map[string]file{}}
	var changes []watch.Event
	for _, entry := range entries {
		name, isSetting := strings.CutSuffix(entry.Name(), ".json")
		if !isSetting {
			continue
		}
		content, err := os.ReadFile(filepath.Join(d.path, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		known, exists := d.state.files[name]
		now := &Setting{}
		switch {
		case err != nil:
			return state{}, err
		case exists && bytes.Equal(known.content, content):
			next.files[name] = known
			continue
		}
		if err := json.Unmarshal(content, now); err != nil {
			return state{}, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		now.Name, now.Namespace = name, ""
		change := watch.Event{Type: watch.Added, Object: now}
		if exists {
			change.Type, now.UID = watch.Modified, known.setting.UID
		}
		next.files[name] = file{content, now}
		changes = append(changes, change)
	}
	for name, known := range d.state.files {
		if _, exists := next.files[name]; !exists { // the last state, at the version of the deletion
			changes = append(changes, watch.Event{Type: watch.Deleted, Object: known.setting.DeepCopyObject()})
		}
	}
	for _, change := range changes {
		next.version++
		setting := change.Object.(*Setting)
		setting.ResourceVersion = format(next.version)
		if change.Type == watch.Added { // by UID and version a relist recognizes it as unchanged
			setting.UID = types.UID(fmt.Sprintf("%s-%d", setting.Name, next.version))
		}
	}
	history := append(d.state.history, changes...)
	next.history = history[max(0, len(history)-keptChanges):]
	return next, nil
}

func format(version uint64) string { return strconv.FormatUint(version, 10) }
