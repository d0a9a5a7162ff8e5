package clientgo

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// pool is a transport that counts calls of CloseIdleConnections.
type pool struct {
	http.RoundTripper
	closed int
}

func (p *pool) CloseIdleConnections() { p.closed++ }

// http.Client only calls CloseIdleConnections of its own transport, and client-go's transports with
// credentials do not have it.
func TestClosingIdleConnectionsReachesThoseBehindTheRateLimiter(t *testing.T) {
	connections := &pool{}
	inner, err := rest.TransportFor(&rest.Config{Transport: connections, BearerToken: "s3cret"})
	require.NoError(t, err)
	require.NotEqual(t, http.RoundTripper(connections), inner)
	transport := throttled(inner, flowcontrol.NewFakeAlwaysRateLimiter())

	(&http.Client{Transport: transport}).CloseIdleConnections()
	assert.Equal(t, 1, connections.closed)
	utilnet.CloseIdleConnectionsFor(transport)
	assert.Equal(t, 2, connections.closed)
}

func TestWithoutARateLimiterTheTransportIsUsedAsItIs(t *testing.T) {
	connections := &pool{}
	assert.Same(t, connections, throttled(connections, nil))
	assert.Nil(t, throttled(nil, nil))
}

// closer is a request body that records that it was closed.
type closer struct{ closed bool }

func (c *closer) Read([]byte) (int, error) { return 0, io.EOF }

func (c *closer) Close() error {
	c.closed = true
	return nil
}

func TestARequestThatIsNotSentHasItsBodyClosedAllTheSame(t *testing.T) {
	body := &closer{}
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, "http://api.test", body)
	require.NoError(t, err)
	_, err = throttled(&pool{}, flowcontrol.NewFakeNeverRateLimiter()).RoundTrip(request)
	require.ErrorContains(t, err, "waiting for the client's rate limiter")
	assert.True(t, body.closed)
}
