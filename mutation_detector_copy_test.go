package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// copying has a DeepCopyObject made by the test.
type copying struct {
	bare
	Name string `json:"name"`
	copy func() apiruntime.Object
}

func (c *copying) DeepCopyObject() apiruntime.Object { return c.copy() }

func TestWhatCannotBeCopiedIsSaidOncePerTypeAndNotWatched(t *testing.T) {
	for name, test := range map[string]struct {
		object any
		says   string
	}{
		"no DeepCopyObject": {
			object: map[string]string{"a": "b"},
			says:   `object "k" of type map[string]string is not watched for changes: it has no DeepCopyObject`,
		},
		"returns nil": {
			object: &copying{copy: func() apiruntime.Object { return (*copying)(nil) }},
			says:   `object "k" of type *cache.copying is not watched for changes: its DeepCopyObject returned nil`,
		},
		"panics": {
			object: &copying{copy: func() apiruntime.Object { panic("no") }},
			says:   `object "k" of type *cache.copying is not watched for changes: DeepCopyObject panicked: no`,
		},
		"leaves something out": {
			object: &copying{Name: "n", copy: func() apiruntime.Object { return &copying{} }},
			says:   `object "k" of type *cache.copying is not watched for changes: its deep copy differs from it: name changed`,
		},
		"returns another type": {
			object: &copying{copy: func() apiruntime.Object { return newMachine("m") }},
			says:   `object "k" of type *cache.copying is not watched for changes: its deep copy differs from it: . changed`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			detector, heard := newDetector()
			before := newMachine("m")
			detector.stored("k", before, detector.report)
			before.Labels["app"] = "changed"
			detector.stored("k", test.object, detector.report)
			detector.stored("other", test.object, detector.report)
			detector.check()
			said := heard.take()
			require.Len(t, said, 2)
			require.Equal(t, test.says, said[0])
			require.Contains(t, said[1], `metadata.labels["app"] changed`, "what was there before is compared all the same")
		})
	}
}

func TestAPanicOfDeepCopyObjectIsTheCauseThatIsReported(t *testing.T) {
	var errs []error
	detector := newMutationDetector(MutationDetection{SampleEvery: 1}, func(err error) { errs = append(errs, err) })
	cause := errors.New("broken")
	detector.stored("k", &copying{copy: func() apiruntime.Object { panic(cause) }}, detector.report)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], cause)
	var unwatched *UnwatchedTypeError
	require.ErrorAs(t, errs[0], &unwatched)
	require.Equal(t, "k", unwatched.Key)
}
