package kubeapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const causeToken = "umbrella-corp"

// withSecret returns a source whose requests have the token.
func withSecret(t *testing.T, rt http.RoundTripper, o Options) *ListerWatcher {
	o.Authorize = func(r *http.Request) error {
		r.Header.Set("X-Tenant", causeToken)
		return nil
	}
	return newSourceOf(t, rt, o)
}

// repeatingError has the token in a field, but possibly not in its text.
type repeatingError struct {
	text   string
	field  string
	bytes  []byte
	inner  any
	causes []error
}

func (e *repeatingError) Error() string   { return e.text }
func (e *repeatingError) Unwrap() []error { return e.causes }

// Fails if the causes of an error are dropped with its text, or if one of them has the hidden text.
func TestAnErrorWhoseTextHasASecretKeepsTheCausesThatHaveNone(t *testing.T) {
	refused := &net.OpError{
		Op:   "dial",
		Net:  "tcp",
		Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443},
		Err:  syscall.ECONNREFUSED,
	}
	lookup := &net.DNSError{Err: "no such host", Name: causeToken + ".test", IsNotFound: true}
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		err         error
		is          []error
		safe, leaky any // types for errors.As
	}{
		"wrapped": {
			fmt.Errorf("as %s: %w", causeToken, refused), []error{refused, syscall.ECONNREFUSED},
			new(*net.OpError), new(*net.DNSError),
		},
		"below a bad one": {
			fmt.Errorf("as %s: %w", causeToken, &net.OpError{Op: "dial", Err: lookup}), nil, nil,
			new(*net.DNSError),
		},
		"in the outer one": {
			fmt.Errorf("as %s: %w", causeToken, &net.OpError{Op: "dial", Err: lookup}), nil, nil,
			new(*net.OpError),
		},
		"joined": {
			errors.Join(lookup, boom, io.ErrUnexpectedEOF), []error{boom, io.ErrUnexpectedEOF}, nil,
			new(*net.DNSError),
		},
		"a text": {
			&repeatingError{text: causeToken, causes: []error{boom}}, []error{boom}, nil,
			new(*repeatingError),
		},
		"a field": {
			fmt.Errorf("%s: %w", causeToken, &repeatingError{field: causeToken, causes: []error{boom}}),
			[]error{boom}, nil, new(*repeatingError),
		},
		"bytes": {
			fmt.Errorf("%s: %w", causeToken, &repeatingError{bytes: []byte(causeToken), causes: []error{boom}}),
			[]error{boom}, nil, new(*repeatingError),
		},
		"a map": {
			fmt.Errorf("%s: %w", causeToken, &repeatingError{inner: map[string]int{causeToken: 1}, causes: []error{boom}}),
			[]error{boom}, nil, new(*repeatingError),
		},
		"a cause": {
			fmt.Errorf("%s: %w", causeToken, &repeatingError{causes: []error{boom, lookup}}),
			[]error{boom}, nil, new(*repeatingError),
		},
		"nothing": {
			fmt.Errorf("%s: %w", causeToken, &repeatingError{causes: []error{boom}}), []error{boom},
			new(*repeatingError), new(*net.DNSError),
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := withSecret(
				t, server(func(*http.Request) (*http.Response, error) { return nil, test.err }),
				Options{})
			_, err := source.List(metav1.ListOptions{})
			require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), causeToken)
			for _, cause := range test.is {
				require.ErrorIs(t, err, cause)
			}
			if test.safe != nil {
				require.ErrorAs(t, err, test.safe)
			}
			require.False(t, errors.As(err, test.leaky), "%T has it", test.leaky)
		})
	}
}

// Fails if an event whose type contains a secret counts as a cut stream, or if a list with an item
// of such a kind is not malformed.
func TestBadDataWithASecretInItIsStillBadData(t *testing.T) {
	source := withSecret(
		t, respondWith(200, `{"type":"`+causeToken+`","object":{}}`+"\n"), Options{})
	watching, err := source.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	defer watching.Stop()
	status := (<-watching.ResultChan()).Object.(*metav1.Status)
	require.Equal(t, CauseBadFrame, status.Details.Causes[0].Type)
	require.NotContains(t, status.Message, causeToken)

	source = withSecret(
		t, respondWith(200, `{"items":[{"kind":"`+causeToken+`","apiVersion":"v1"}]}`),
		Options{ObjectType: typedWidget("x/v1", "Widget"), Encodings: []Encoding{JSON}})
	_, err = source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(_ metav1.ListMeta, item runtime.Object) error {
			bad := item.(*UndecodableObject)
			require.ErrorIs(t, bad.Err, ErrMalformed)
			require.NotContains(t, bad.Err.Error(), causeToken)
			return nil
		},
	)
	require.NoError(t, err)
}
