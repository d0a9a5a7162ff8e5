package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// Events that are strange and undecoded at once.

// G12: of an event of a type that nobody knows both are reported, the type and what is
// wrong with its object; the version counts. Fails if one hides the other.
func TestAnEventOfAnUnknownTypeIsReportedWhateverItsObject(t *testing.T) {
	for name, row := range map[string]struct {
		obj     apiruntime.Object
		decode  bool
		version string
	}{
		"decoded":             {podAt("a", "1", "9"), false, "9"},
		"undecoded":           {undecoded(podAt("a", "1", "9")), true, "9"},
		"undecoded, nameless": {undecoded(podAt("", "", "9")), true, "9"},
		"nothing":             {nil, false, "5"},
	} {
		for _, strategy := range []ListStrategy{ListWhole, ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, version := &heard{}, row.version
					events := []watch.Event{{Type: "UPSERTED", Object: row.obj}}
					if strategy == ListStreaming {
						version = "10"
						events = append(events, watch.Event{Type: watch.Bookmark, Object: initialEventsEnd(version)})
					}
					source := &scripted{watch: func(context.Context, int) (watch.Interface, error) { return newProbe(events...), nil }}
					r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					require.Len(t, h.all(), 1)
					var unknown *UnexpectedTypeError
					require.ErrorAs(t, h.all()[0], &unknown)
					assert.Equal(t, "UPSERTED", unknown.Actual)
					assert.Equal(t, row.decode, errors.Is(h.all()[0], errBoom))
					assert.Equal(t, row.obj == nil, errors.Is(h.all()[0], ErrNilObject))
					assert.Equal(t, version, r.LastSyncResourceVersion())
					stop()
				})
			})
		}
	}
}

// G12: of an error event whose Status could not be decoded the cause is reported, and
// nothing is made of what it looks like. Fails if the cause is dropped, or taken for the
// server's answer.
func TestAnErrorEventThatCannotBeDecodedIsReportedWithItsCause(t *testing.T) {
	for name, cause := range map[string]error{"anything": errBoom, "what looks like an answer": cachetest.ErrExpired()} {
		for _, strategy := range []ListStrategy{ListWhole, ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, lists := &heard{}, 0
					source := &scripted{list: func(o metav1.ListOptions) (apiruntime.Object, error) {
						if isVersionCheck(o) {
							return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}, nil
						}
						lists++
						return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
					}, watch: func(_ context.Context, n int) (watch.Interface, error) {
						if n > 1 {
							return newProbe(watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("9")}), nil
						}
						bad := undecoded(podAt("", "", ""))
						bad.why = func() error { return cause }
						return newProbe(watch.Event{Type: watch.Error, Object: bad}), nil
					}}
					r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{Strategy: strategy, ErrorHandler: h.handle})
					stop := runReflector(t, r)
					sleep(time.Minute)
					require.Len(t, h.all(), 1)
					assert.ErrorIs(t, h.all()[0], cause)
					assert.ErrorContains(t, h.all()[0], "in place of a Status")
					assert.Equal(t, []Cause{CauseObject}, h.causes())
					assert.Equal(t, strategy == ListWhole, lists == 1, "watched again, or streamed")
					assert.Equal(t, "9", r.LastSyncResourceVersion())
					stop()
				})
			})
		}
	}
}
