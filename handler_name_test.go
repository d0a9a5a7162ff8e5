package cache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// silent is a handler that does nothing.
type silent struct{}

func (silent) OnAdd(any, bool)   {}
func (silent) OnUpdate(_, _ any) {}
func (silent) OnDelete(any)      {}
func (silent) String() string    { panic("not to be called") }

// lazy is a handler with embedded parts that are not there yet.
type lazy struct {
	silent
	*cache.ResourceEventHandlerFuncs
}

func (lazy) OnAdd(any, bool)   {}
func (lazy) OnUpdate(_, _ any) {}
func (lazy) OnDelete(any)      {}

// deep has its Handler in an embedded part that is not there.
type deep struct {
	silent
	*parts
}

type parts struct{ Handler cache.ResourceEventHandler }

// selfish is its own Handler.
type selfish struct {
	silent
	Handler cache.ResourceEventHandler
}

type embedding struct {
	cache.ResourceEventHandlerFuncs
}

func onUpdateOfThisTest(*metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata) {}

func nameless(t *testing.T) *cache.Informer[*metav1.PartialObjectMetadata] {
	source := cachetest.NewSource(cachetest.Options{})
	t.Cleanup(source.Close)
	return cache.NewInformerFor(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{})
}

// Fails if a name is looked for in the fields of a handler.
func TestAnyHandlerGetsANameWithoutBeingLookedInto(t *testing.T) {
	selfHandling := &selfish{}
	selfHandling.Handler = selfHandling
	selfFiltering := &cache.FilteringResourceEventHandler{}
	selfFiltering.Handler = selfFiltering
	functions := cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {}}
	detailed := cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(any, bool) {}}
	const place = "github.com/watchmirror/cache_test.TestAnyHandlerGetsANameWithoutBeingLookedInto"
	for want, handlers := range map[string][]cache.ResourceEventHandler{
		place + ".func1":                       {functions, &functions, cache.FilteringResourceEventHandler{Handler: functions}},
		place + ".func2":                       {detailed, &detailed},
		"cache.ResourceEventHandlerFuncs":      {cache.ResourceEventHandlerFuncs{}},
		"*cache.ResourceEventHandlerFuncs":     {cache.FilteringResourceEventHandler{Handler: (*cache.ResourceEventHandlerFuncs)(nil)}},
		"cache.FilteringResourceEventHandler":  {cache.FilteringResourceEventHandler{}},
		"*cache.FilteringResourceEventHandler": {selfFiltering, cache.FilteringResourceEventHandler{Handler: selfFiltering}},
		"cache_test.silent":                    {silent{}},
		"*cache_test.silent":                   {&silent{}},
		"cache_test.embedding":                 {embedding{functions}},
		"cache_test.lazy":                      {lazy{}},
		"*cache_test.lazy":                     {&lazy{}},
		"cache_test.deep":                      {deep{}},
		"*cache_test.selfish":                  {selfHandling},
	} {
		for _, handler := range handlers {
			informer := nameless(t)
			_, err := informer.Shared().AddEventHandler(handler)
			require.NoError(t, err)
			require.Equal(t, want, informer.Status().Handlers[0].Name)
		}
	}
}

func TestATypedHandlerGetsANameAsAnUntypedOneDoes(t *testing.T) {
	type object = *metav1.PartialObjectMetadata
	functions := cache.TypedResourceEventHandlerFuncs[object]{UpdateFunc: onUpdateOfThisTest}
	detailed := cache.TypedResourceEventHandlerDetailedFuncs[object]{UpdateFunc: onUpdateOfThisTest}
	selfFiltering := &cache.TypedFilteringResourceEventHandler[object]{}
	selfFiltering.Handler = selfFiltering
	for want, handlers := range map[string][]cache.TypedResourceEventHandler[object]{
		"github.com/watchmirror/cache_test.onUpdateOfThisTest": {
			functions, &functions, detailed, &detailed, cache.TypedFilteringResourceEventHandler[object]{Handler: functions},
		},
		"cache.TypedResourceEventHandlerFuncs[*k8s.io/apimachinery/pkg/apis/meta/v1.PartialObjectMetadata]":      {cache.TypedResourceEventHandlerFuncs[object]{}},
		"*cache.TypedFilteringResourceEventHandler[*k8s.io/apimachinery/pkg/apis/meta/v1.PartialObjectMetadata]": {selfFiltering},
	} {
		for _, handler := range handlers {
			informer := nameless(t)
			_, err := informer.AddHandler(handler)
			require.NoError(t, err)
			require.Equal(t, want, informer.Status().Handlers[0].Name)
		}
	}
}
