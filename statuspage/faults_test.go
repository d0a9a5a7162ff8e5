package statuspage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

// An operator's fault: the error of each request, and what names its cause.
type operatorsFault struct {
	err   error
	cause string
	// words explain the cause in the index.
	words string
	// text is a part of the first log line.
	text string
}

func requestFailed(err error) error {
	address := "https://kubernetes.example:6443/apis/shop.example/v1/orders?limit=500&resourceVersion=0"
	return &url.Error{Op: "Get", URL: address, Err: err}
}

func operatorsFaults() map[string]operatorsFault {
	orders := schema.GroupResource{Group: "shop.example", Resource: "orders"}
	denied := errors.New(`User "system:serviceaccount:shop:controller" cannot list resource "orders" in API group "shop.example"`)
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	unknownHost := &net.DNSError{Err: "no such host", Name: "kubernetes.example", IsNotFound: true}
	return map[string]operatorsFault{
		"forbidden": {
			err:   apierrors.NewForbidden(orders, "", denied),
			cause: "forbidden",
			text:  "orders.shop.example is fo",
		},
		"missing definition": {
			err:   apierrors.NewGenericServerResponse(http.StatusNotFound, "list", orders, "", "", 0, true),
			cause: "not-found",
			text:  "(list orders.shop.example)",
		},
		"server down": {
			err:   requestFailed(refused),
			cause: "connection-refused",
			text:  "connection refused",
		},
		"unknown host": {
			err:   requestFailed(&net.OpError{Op: "dial", Net: "tcp", Err: unknownHost}),
			cause: "unreachable",
			text:  "lookup kubernetes.example: no such host",
		},
		"HTTPS to an HTTP port": {
			err:   requestFailed(http.ErrSchemeMismatch),
			cause: "invalid-response",
			words: "invalid-response: the server speaks HTTP, not HTTPS",
			text:  "server gave HTTP response to HTTPS client",
		},
	}
}

func TestAnOperatorsFaultIsNamedInTheIndexAndInTheFirstLine(t *testing.T) {
	for name, fault := range operatorsFaults() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, "Order", 0)
				source.FailRequests(cachetest.Forever, fault.err)
				index, line := indexAndFirstLine(t, source)
				assert.Contains(t, index, "The cache has a problem")
				assert.Contains(t, index, fault.cause)
				assert.Contains(t, index, fault.words)
				assert.Contains(t, line, fmt.Sprintf("cause=%q", fault.cause))
				assert.Contains(t, strings.ReplaceAll(line, `\"`, `"`), fault.text)
			})
		})
	}
}

func TestObjectsOfAnotherTypeAreNamedInTheIndexAndInTheFirstLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSourceOf[*metav1.PartialObjectMetadata](t, cachetest.Options{})
		source.MustApply(t, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		index, line := indexAndFirstLine(t, source)
		assert.Contains(t, index, "wrong-type")
		assert.Contains(t, line, `cause="wrong-type"`)
		assert.Contains(t, line, "PartialObjectMetadata")
	})
}

func TestAnInformerThatNobodyRunsIsNamedInTheIndex(t *testing.T) {
	var registry statuspage.Registry
	add(t, &registry, "orders", newInformer("orders", newSource(t, "Order", 0)))
	index := textOf(get(&registry, "").Body.String())
	assert.Contains(t, index, "The cache has a problem")
	assert.Contains(t, index, "Run was not called")
}

// Fails if an operator cannot find the informer of a log line on the page, or the other way round.
func TestInformersWithoutNamesAreDistinguishedOnThePageAsInTheLog(t *testing.T) {
	var registry statuspage.Registry
	names := map[string]bool{}
	for _, kind := range []string{"Pod", "Order"} {
		informer := cache.NewTypedInformer[object](newSource(t, kind, 0))
		add(t, &registry, kind, informer)
		name := informer.Status().Name
		names[name] = true
		assert.Contains(t, get(&registry, "?name="+kind).Body.String(), "<dt>Name in the log</dt><dd>"+name+"</dd>")
	}
	assert.Len(t, names, 2)
	index := textOf(get(&registry, "").Body.String())
	assert.Contains(t, index, "v1 pods")
	assert.Contains(t, index, "v1 orders")

	add(t, &registry, "named", newInformer("named", newSource(t, "Pod", 0)))
	assert.NotContains(t, get(&registry, "?name=named").Body.String(), "Name in the log")
}

// indexAndFirstLine runs an informer for a second, and returns the text of the page of all caches
// and the first line of the log.
func indexAndFirstLine(t *testing.T, source cache.Source) (index, line string) {
	var out bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	informer := cache.NewTypedInformer(source, cache.InformerConfig[object]{
		Name:             "orders",
		ReflectorOptions: cache.ReflectorOptions{Logger: &logger},
	})
	var registry statuspage.Registry
	add(t, &registry, "orders", informer)
	stop := start(t, func(ctx context.Context) { _ = informer.Run(ctx) })
	time.Sleep(time.Second)
	synctest.Wait()
	index = textOf(get(&registry, "").Body.String())
	stop()
	line, _, isWhole := strings.Cut(out.String(), "\n")
	require.True(t, isWhole, out.String())
	return index, line
}

// textOf returns the text of a page.
func textOf(page string) string {
	withoutTags := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	return html.UnescapeString(withoutTags)
}
