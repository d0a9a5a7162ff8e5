package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

// B15: versions of any number of digits are compared alike.
func TestB15VersionsOfAnyLengthAreCompared(t *testing.T) {
	for name, prefix := range map[string]string{
		"short": "", "20 digits": "18446744073709551", "39 digits": "340282366920938463463374607431768211",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{
					list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
						if n == 1 {
							return listAt(prefix+"451", validPod("a", prefix+"450")), nil
						}
						return listAt(prefix+"460", validPod("a", prefix+"452")), nil
					},
					watch: func(n int, w *networkWatch) error {
						if n == 1 {
							w.events <- modified(validPod("a", prefix+"452"))
							w.events <- modified(validPod("a", prefix+"449"))
						}
						return nil
					},
				}
				m := source.runFor(t, time.Minute, nil)
				assert.Equal(t, map[string]string{"a/a": prefix + "452"}, contents(m.store))
				assert.Equal(t, []cache.VersionRegressionError{
					{Kind: "event", Key: "a/a", Current: prefix + "452", Received: prefix + "449"},
				}, m.regressions())
			})
		})
	}
}
