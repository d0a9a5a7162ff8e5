package compat

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	theirs "k8s.io/client-go/tools/cache"

	ours "github.com/watchmirror/cache"
)

// TestMain drops apimachinery's limit of one reported error a millisecond: it
// compares the time of an error in a bubble with that of one outside, decades
// later, and would sleep for as long.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// side is one of the two packages, behind what the scripts of the other files
// use: interfaces that both satisfy as they are, and functions where a signature
// mentions a type of the package.
type side struct {
	name string

	// Names and keys.
	keyOf         func(obj any) (string, error)
	tombstoneKey  func(key string) (string, error)
	explicitKey   func(key string) (string, error)
	split         func(key string) (namespace, name string, err error)
	parse         func(key string) (text, namespace, name string, err error)
	join          func(namespace, name string) string
	toName        func(obj any) (string, error)
	tombstoneName func(key string) (string, error)
	namespaceFunc func(obj any) ([]string, error)
	singleKey     func(values ...string) (string, error)

	newIndexer    func(transform func(any) (any, error)) indexer
	newThreadSafe func() threadSafe
	// newIndexerOf also returns what clears the map that was passed.
	newIndexerOf     func() (x indexer, clearTheMap func())
	emptyListWatch   func() source
	addIndex         func(in any, name string, index func(any) ([]string, error)) error
	addIndexes       func(in any, indexes map[string]func(any) ([]string, error)) error
	indexNames       func(of any) []string
	changeIndexNames func(of any)
	newQueue         func(known known, o queueOptions) queue
	newReflector     func(source source, expected any, store store, resync time.Duration) reflector
}

// store, source and known mention no type of either package: a value of one type
// serves both sides.
type (
	store  = ours.ReflectorStore
	source = ours.ListerWatcher
	known  = ours.KeyListerGetter
)

// indexer is what of an Indexer mentions no type of its package.
type indexer interface {
	ours.Store
	Index(index string, obj any) ([]any, error)
	IndexKeys(index, value string) ([]string, error)
	ListIndexFuncValues(index string) []string
	ByIndex(index, value string) ([]any, error)
}

// threadSafe is that of a ThreadSafeStore.
type threadSafe interface {
	Add(key string, obj any)
	Update(key string, obj any)
	Delete(key string)
	Get(key string) (any, bool)
	Replace(items map[string]any, version string)
	IndexKeys(index, value string) ([]string, error)
}

type queueOptions struct {
	replaced  bool
	transform func(any) (any, error)
}

// queue is a DeltaFIFO; pop says what came out, in words.
type queue interface {
	store
	HasSynced() bool
	Close()
	IsClosed() bool
	KeyOf(obj any) (string, error)
	pop(process func() error) (out popped, err error)
	tombstone(key string, obj any) any
	keyOfNoDeltas() (string, error)
}

// popped is what one Pop handed to its function.
type popped struct {
	deltas  string
	initial bool
}

// reflector is what of a Reflector both have.
type reflector interface {
	RunWithContext(ctx context.Context)
	ListAndWatchWithContext(ctx context.Context) error
	LastSyncResourceVersion() string
	Name() string
	TypeDescription() string
}

var sides = []side{oursSide, theirsSide}

var oursSide = side{
	name:  "ours",
	keyOf: ours.MetaNamespaceKeyFunc,
	tombstoneKey: func(key string) (string, error) {
		return ours.DeletionHandlingMetaNamespaceKeyFunc(ours.DeletedFinalStateUnknown{Key: key})
	},
	explicitKey: func(key string) (string, error) { return ours.MetaNamespaceKeyFunc(ours.ExplicitKey(key)) },
	split:       ours.SplitMetaNamespaceKey,
	parse: func(key string) (string, string, string, error) {
		name, err := ours.ParseObjectName(key)
		return name.String(), name.Namespace, name.Name, err
	},
	join: func(namespace, name string) string { return ours.NewObjectName(namespace, name).String() },
	tombstoneName: func(key string) (string, error) {
		name, err := ours.DeletionHandlingObjectToName(ours.DeletedFinalStateUnknown{Key: key})
		return name.String(), err
	},
	toName: func(obj any) (string, error) {
		name, err := ours.ObjectToName(obj)
		return name.String(), err
	},
	namespaceFunc: ours.MetaNamespaceIndexFunc,
	singleKey: func(values ...string) (string, error) {
		return ours.IndexFuncToKeyFuncAdapter(func(any) ([]string, error) { return values, nil })(nil)
	},
	newIndexer: func(transform func(any) (any, error)) indexer {
		var options []ours.StoreOption
		if transform != nil {
			options = append(options, ours.WithTransformer(transform))
		}
		return ours.NewIndexer(ours.MetaNamespaceKeyFunc, ours.Indexers{ours.NamespaceIndex: ours.MetaNamespaceIndexFunc}, options...)
	},
	newThreadSafe: func() threadSafe { return ours.NewThreadSafeStore(ours.Indexers{}, ours.Indices{}) },
	newIndexerOf: func() (indexer, func()) {
		indexes := ours.Indexers{"one": ours.MetaNamespaceIndexFunc}
		return ours.NewIndexer(ours.MetaNamespaceKeyFunc, indexes), func() { clear(indexes) }
	},
	emptyListWatch: func() source { return &ours.ListWatch{} },
	addIndexes: func(in any, indexes map[string]func(any) ([]string, error)) error {
		indexers := ours.Indexers{}
		for name, index := range indexes {
			indexers[name] = index
		}
		return in.(interface{ AddIndexers(ours.Indexers) error }).AddIndexers(indexers)
	},
	addIndex: func(in any, name string, index func(any) ([]string, error)) error {
		return in.(interface{ AddIndexers(ours.Indexers) error }).AddIndexers(ours.Indexers{name: index})
	},
	indexNames: func(of any) (names []string) {
		for name := range of.(interface{ GetIndexers() ours.Indexers }).GetIndexers() {
			names = append(names, name)
		}
		return names
	},
	changeIndexNames: func(of any) {
		clear(of.(interface{ GetIndexers() ours.Indexers }).GetIndexers())
	},
	newQueue: func(known known, o queueOptions) queue {
		return oursQueue{ours.NewDeltaFIFOWithOptions(ours.DeltaFIFOOptions{
			KeyFunction: ours.MetaNamespaceKeyFunc, KnownObjects: known,
			EmitDeltaTypeReplaced: o.replaced, Transformer: o.transform,
		})}
	},
	newReflector: func(source source, expected any, store store, resync time.Duration) reflector {
		return ours.NewReflector(source, expected, store, resync)
	},
}

var theirsSide = side{
	name:  "client-go",
	keyOf: theirs.MetaNamespaceKeyFunc,
	tombstoneKey: func(key string) (string, error) {
		return theirs.DeletionHandlingMetaNamespaceKeyFunc(theirs.DeletedFinalStateUnknown{Key: key})
	},
	explicitKey: func(key string) (string, error) { return theirs.MetaNamespaceKeyFunc(theirs.ExplicitKey(key)) },
	split:       theirs.SplitMetaNamespaceKey,
	parse: func(key string) (string, string, string, error) {
		name, err := theirs.ParseObjectName(key)
		return name.String(), name.Namespace, name.Name, err
	},
	join: func(namespace, name string) string { return theirs.NewObjectName(namespace, name).String() },
	tombstoneName: func(key string) (string, error) {
		name, err := theirs.DeletionHandlingObjectToName(theirs.DeletedFinalStateUnknown{Key: key})
		return name.String(), err
	},
	toName: func(obj any) (string, error) {
		name, err := theirs.ObjectToName(obj)
		return name.String(), err
	},
	namespaceFunc: theirs.MetaNamespaceIndexFunc,
	singleKey: func(values ...string) (string, error) {
		return theirs.IndexFuncToKeyFuncAdapter(func(any) ([]string, error) { return values, nil })(nil)
	},
	newIndexer: func(transform func(any) (any, error)) indexer {
		var options []theirs.StoreOption
		if transform != nil {
			options = append(options, theirs.WithTransformer(transform))
		}
		return theirs.NewIndexer(theirs.MetaNamespaceKeyFunc, theirs.Indexers{theirs.NamespaceIndex: theirs.MetaNamespaceIndexFunc}, options...)
	},
	newThreadSafe: func() threadSafe { return theirs.NewThreadSafeStore(theirs.Indexers{}, theirs.Indices{}) },
	newIndexerOf: func() (indexer, func()) {
		indexes := theirs.Indexers{"one": theirs.MetaNamespaceIndexFunc}
		return theirs.NewIndexer(theirs.MetaNamespaceKeyFunc, indexes), func() { clear(indexes) }
	},
	emptyListWatch: func() source { return &theirs.ListWatch{} },
	addIndexes: func(in any, indexes map[string]func(any) ([]string, error)) error {
		indexers := theirs.Indexers{}
		for name, index := range indexes {
			indexers[name] = index
		}
		return in.(interface{ AddIndexers(theirs.Indexers) error }).AddIndexers(indexers)
	},
	addIndex: func(in any, name string, index func(any) ([]string, error)) error {
		return in.(interface{ AddIndexers(theirs.Indexers) error }).AddIndexers(theirs.Indexers{name: index})
	},
	indexNames: func(of any) (names []string) {
		for name := range of.(interface{ GetIndexers() theirs.Indexers }).GetIndexers() {
			names = append(names, name)
		}
		return names
	},
	changeIndexNames: func(of any) {
		clear(of.(interface{ GetIndexers() theirs.Indexers }).GetIndexers())
	},
	newQueue: func(known known, o queueOptions) queue {
		return theirsQueue{theirs.NewDeltaFIFOWithOptions(theirs.DeltaFIFOOptions{
			KeyFunction: theirs.MetaNamespaceKeyFunc, KnownObjects: known,
			EmitDeltaTypeReplaced: o.replaced, Transformer: o.transform,
		})}
	},
	newReflector: func(source source, expected any, store store, resync time.Duration) reflector {
		return theirs.NewReflector(source, expected, store, resync)
	},
}

type oursQueue struct{ *ours.DeltaFIFO }

func (q oursQueue) tombstone(key string, obj any) any {
	return ours.DeletedFinalStateUnknown{Key: key, Obj: obj}
}

func (q oursQueue) keyOfNoDeltas() (string, error) { return q.KeyOf(ours.Deltas{}) }

func (q oursQueue) pop(process func() error) (out popped, err error) {
	_, err = q.Pop(func(obj any, initial bool) error {
		out.initial = initial
		for _, d := range obj.(ours.Deltas) {
			out.add(string(d.Type), d.Object)
		}
		return process()
	})
	return out, err
}

type theirsQueue struct{ *theirs.DeltaFIFO }

func (q theirsQueue) tombstone(key string, obj any) any {
	return theirs.DeletedFinalStateUnknown{Key: key, Obj: obj}
}

func (q theirsQueue) keyOfNoDeltas() (string, error) { return q.KeyOf(theirs.Deltas{}) }

func (q theirsQueue) pop(process func() error) (out popped, err error) {
	_, err = q.Pop(func(obj any, initial bool) error {
		out.initial = initial
		for _, d := range obj.(theirs.Deltas) {
			out.add(string(d.Type), d.Object)
		}
		return process()
	})
	return out, err
}

func (p *popped) add(kind string, obj any) {
	if p.deltas != "" {
		p.deltas += ", "
	}
	p.deltas += kind + " " + show(obj)
}

// show says which state of which object something is.
func show(obj any) string {
	switch obj := obj.(type) {
	case nil:
		return "nothing"
	case ours.DeletedFinalStateUnknown:
		return fmt.Sprintf("tombstone(%s, %s)", obj.Key, show(obj.Obj))
	case theirs.DeletedFinalStateUnknown:
		return fmt.Sprintf("tombstone(%s, %s)", obj.Key, show(obj.Obj))
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	text := accessor.GetName()
	if namespace := accessor.GetNamespace(); namespace != "" {
		text = namespace + "/" + text
	}
	if version := accessor.GetResourceVersion(); version != "" {
		text += "@" + version
	}
	if label := accessor.GetLabels()["v"]; label != "" {
		text += " " + label
	}
	return text
}

// object has metadata and nothing else.
type object = metav1.PartialObjectMetadata

// at is the state of an object of namespace ns at a version.
func at(name, version string) *object {
	return &object{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, ResourceVersion: version, UID: types.UID("uid-" + name),
		},
	}
}

// in puts an object into another namespace.
func in(namespace string, o *object) *object {
	o.Namespace = namespace
	return o
}

// list is a list of objects as stores take it.
func list(objects ...*object) []any {
	out := make([]any, 0, len(objects))
	for _, o := range objects {
		out = append(out, o)
	}
	return out
}

// listObject is what a source's List returns.
type listObject = apiruntime.Object
