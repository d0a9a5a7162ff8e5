package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type namedHandler struct{ ResourceEventHandlerFuncs }

type hidingHandler struct{}

func (hidingHandler) OnAdd(any, bool)     {}
func (hidingHandler) OnUpdate(_, _ any)   {}
func (hidingHandler) OnDelete(any)        {}
func (hidingHandler) String() string      { panic("not to be called") }
func onDeleteOfThisTest(*object, *object) {}

func TestAHandlerWithoutANameIsCalledAfterItsFunctionsOrItsType(t *testing.T) {
	functions := ResourceEventHandlerFuncs{DeleteFunc: func(any) {}}
	for want, handler := range map[string]any{
		"cache.TestAHandlerWithoutANameIsCalledAfterItsFunctionsOrItsType.func1": functions,
		"cache.onDeleteOfThisTest":            TypedResourceEventHandlerFuncs[*object]{UpdateFunc: onDeleteOfThisTest},
		"cache.ResourceEventHandlerFuncs":     ResourceEventHandlerFuncs{},
		"cache.hidingHandler":                 hidingHandler{},
		"*cache.hidingHandler":                &hidingHandler{},
		"cache.FilteringResourceEventHandler": FilteringResourceEventHandler{},
	} {
		require.Contains(t, handlerName(handler), want)
	}
	require.Contains(t, handlerName(FilteringResourceEventHandler{Handler: functions}), "func1")
	require.Contains(t, handlerName(&namedHandler{functions}), "func1")
}
