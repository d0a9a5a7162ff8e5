// Package kubelease stores the leases of package sharding as Lease objects of the Kubernetes API
// (coordination.k8s.io/v1).
//
// The replicas' role needs the verbs list, create, update and delete for leases in one namespace. kubectl get leases
// shows the holder of each range. A group may have about 1,000 leases, one for each range and replica: a list is
// limited to 1 MiB.
//
// Requests follow the rules of package kubeapi: redirects stay within the server's origin, and errors contain no
// credential, query or control character, even if the server repeats what it received.
package kubelease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

// Leases is a store of leases for one group of replicas. New returns one. Its methods may be called concurrently. Their
// errors are a *url.Error with the call and the address. The cause of an error response is an *errors.StatusError
// of apimachinery; other causes are those of package kubeapi.
type Leases struct {
	client *apiclient.Client
	url    *url.URL // of the collection, without a query
	group  string
}

var _ sharding.Leases = (*Leases)(nil)

// groupLabel is the label of a group's Lease objects.
const groupLabel = "watchmirror.io/shard-group"

// New returns a store. Of api it uses BaseURL, Namespace, HTTPClient, UserAgent and Authorize, so api may be the result
// of kubeapi.InCluster with a Namespace. The names of the Lease objects begin with group, which must be unique in the
// namespace. The error wraps kubeapi.ErrInvalidOptions.
func New(api kubeapi.Options, group string) (*Leases, error) {
	base, err := apiclient.ParseBaseURL(api.BaseURL)
	for _, check := range []struct {
		field string
		err   error
	}{
		{"BaseURL", err},
		{"Namespace", validateLabel(api.Namespace)},
		{"UserAgent", apiclient.HeaderValue(api.UserAgent)},
		{"group", validateLabel(group)},
	} {
		if check.err != nil {
			return nil, fmt.Errorf("%w: %s: %w", kubeapi.ErrInvalidOptions, check.field, check.err)
		}
	}
	return &Leases{
		client: apiclient.New(api.HTTPClient, api.UserAgent, api.Authorize),
		url:    base.JoinPath("apis", "coordination.k8s.io", "v1", "namespaces", api.Namespace, "leases"),
		group:  group,
	}, nil
}

// validateLabel validates the name of a namespace or group.
func validateLabel(name string) error {
	if name == "" {
		return errors.New("is required")
	}
	return apiclient.Namespace(name)
}

// object has the fields of a Lease that are used. It has no list, whose elements could take far more memory than their
// text.
type object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name            string            `json:"name,omitempty"`
		Namespace       string            `json:"namespace,omitempty"`
		UID             types.UID         `json:"uid,omitempty"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		HolderIdentity       string `json:"holderIdentity,omitempty"`
		LeaseDurationSeconds int    `json:"leaseDurationSeconds,omitempty"`
		RenewTime            string `json:"renewTime,omitempty"`
	} `json:"spec"`
}

// list is a LeaseList.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           items `json:"items"`
}

// items are decoded one by one, up to maxLeases: many empty objects would take some hundred times the memory of their
// text.
type items []object

func (all *items) UnmarshalJSON(text []byte) error {
	*all = nil
	decoder := json.NewDecoder(bytes.NewReader(text))
	switch begin, err := decoder.Token(); {
	case err != nil || begin == nil: // null
		return err
	case begin != json.Delim('['):
		return errors.New("items is not an array")
	}
	for decoder.More() {
		if len(*all) == maxLeases {
			return fmt.Errorf("%w: more than %d leases", kubeapi.ErrTooLarge, maxLeases)
		}
		var o object
		if err := decoder.Decode(&o); err != nil {
			return err
		}
		*all = append(*all, o)
	}
	return nil
}

const (
	// maxResponseBytes bounds a response in bytes. A Lease has about one KiB, most of it managed fields.
	maxResponseBytes = 1 << 20
	maxLeases        = 4096
	// maxErrorBytes bounds the bytes of an error response that are read.
	maxErrorBytes = 64 << 10
)

// durationAnnotation has the exact duration, since a Lease's is in whole seconds.
const durationAnnotation = "watchmirror.io/lease-duration"

// version returns a lease's Version: "uid/resourceVersion". Both are preconditions of a change: for a PUT without a UID
// an API server creates a missing Lease, even if the PUT has a resourceVersion.
func (o *object) version() (string, error) {
	if o.Metadata.Name == "" || o.Metadata.UID == "" || o.Metadata.ResourceVersion == "" {
		return "", fmt.Errorf("%w: a Lease without name, uid or resourceVersion", kubeapi.ErrMalformed)
	}
	return string(o.Metadata.UID) + "/" + o.Metadata.ResourceVersion, nil
}

// parseVersion returns the parts of a lease's Version.
func parseVersion(lease sharding.Lease) (uid types.UID, version string, err error) {
	text, version, _ := strings.Cut(lease.Version, "/")
	if text == "" || version == "" {
		return "", "", fmt.Errorf("lease %q has no version of this store: %w", lease.Name, sharding.ErrLeaseConflict)
	}
	return types.UID(text), version, nil
}

// List implements sharding.Leases. It requests the newest state, without paging.
func (l *Leases) List(ctx context.Context) ([]sharding.Lease, error) {
	var all []sharding.Lease
	err := l.call(ctx, "list", http.MethodGet, "", nil, func(body []byte) error {
		var response list
		switch err := json.Unmarshal(body, &response); {
		case errors.Is(err, kubeapi.ErrTooLarge):
			return err
		case err != nil:
			return fmt.Errorf("%w: %w", kubeapi.ErrMalformed, err)
		case response.Kind != "LeaseList" || response.Continue != "":
			return fmt.Errorf("%w: the response is not a complete LeaseList", kubeapi.ErrNotList)
		}
		for _, o := range response.Items {
			version, err := o.version()
			if err != nil {
				return err
			}
			name, inGroup := strings.CutPrefix(o.Metadata.Name, l.group+"-")
			if !inGroup {
				continue
			}
			duration, err := time.ParseDuration(o.Metadata.Annotations[durationAnnotation])
			if err != nil {
				duration = time.Duration(o.Spec.LeaseDurationSeconds) * time.Second
			}
			all = append(all, sharding.Lease{Name: name, Holder: o.Spec.HolderIdentity, Duration: duration, Version: version})
		}
		return nil
	})
	return all, err
}

// Put implements sharding.Leases.
func (l *Leases) Put(ctx context.Context, lease sharding.Lease) (version string, err error) {
	o := object{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	o.Metadata.Name = l.group + "-" + lease.Name
	o.Metadata.Labels = map[string]string{groupLabel: l.group}
	o.Metadata.Annotations = map[string]string{durationAnnotation: lease.Duration.String()}
	o.Spec.HolderIdentity, o.Spec.RenewTime = lease.Holder, time.Now().UTC().Format(metav1.RFC3339Micro)
	o.Spec.LeaseDurationSeconds = max(1, int(lease.Duration.Round(time.Second)/time.Second)) // 0 is invalid
	verb, method, name := "create", http.MethodPost, ""
	if lease.Version != "" {
		if o.Metadata.UID, o.Metadata.ResourceVersion, err = parseVersion(lease); err != nil {
			return "", err
		}
		verb, method, name = "update", http.MethodPut, o.Metadata.Name
	}
	err = l.call(ctx, verb, method, name, o, func(body []byte) (err error) {
		var response object
		if err := json.Unmarshal(body, &response); err != nil {
			return fmt.Errorf("%w: %w", kubeapi.ErrMalformed, err)
		}
		version, err = response.version()
		return err
	})
	return version, err
}

// Delete implements sharding.Leases.
func (l *Leases) Delete(ctx context.Context, lease sharding.Lease) error {
	uid, version, err := parseVersion(lease)
	if err != nil {
		return err
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	return l.call(ctx, "delete", http.MethodDelete, l.group+"-"+lease.Name, options, func([]byte) error { return nil })
}

// call makes a request for the collection or, with a name, for one Lease, and passes the response's body to decode. It
// returns sharding.ErrLeaseConflict for a conflict and for a missing Lease.
func (l *Leases) call(ctx context.Context, verb, method, name string, body any, decode func([]byte) error) error {
	address := *l.url
	if name != "" {
		address = *l.url.JoinPath(url.PathEscape(name))
	}
	printableURL := address.String()
	if method == http.MethodGet {
		address.RawQuery = url.Values{"labelSelector": {groupLabel + "=" + l.group}}.Encode()
	}
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	callCtx, sent := apiclient.Recorded(ctx)
	content, errorCode, err := l.roundTrip(callCtx, method, address.String(), data)
	if err == nil && errorCode == 0 {
		err = decode(content)
	}
	switch {
	case err == nil && errorCode == 0:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = sent.Secrets().CleanError(err)
	default:
		err = statusError(errorCode, content, sent.Secrets())
		if errorCode == http.StatusConflict || errorCode == http.StatusNotFound && name != "" {
			err = fmt.Errorf("%w: %w", sharding.ErrLeaseConflict, err)
		}
	}
	return &url.Error{Op: verb, URL: printableURL, Err: err}
}

// roundTrip sends a request and returns the response's body, and its code if that is not a success.
func (l *Leases) roundTrip(ctx context.Context, method, address string, body []byte) (content []byte, errorCode int, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	if err := l.client.Prepare(request); err != nil {
		return nil, 0, err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	// A caller's transport may ignore the context.
	defer context.AfterFunc(ctx, func() { _ = response.Body.Close() })()
	if code := response.StatusCode; code < 200 || code > 299 {
		content, _ = io.ReadAll(io.LimitReader(response.Body, maxErrorBytes))
		return content, code, nil
	}
	content, err = io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err == nil && len(content) > maxResponseBytes {
		err = fmt.Errorf("%w: more than %d bytes", kubeapi.ErrTooLarge, maxResponseBytes)
	}
	return content, 0, err
}

// statusError returns the error for a response whose code is not a success. Its texts are safe to print.
func statusError(code int, content []byte, secrets apiclient.Secrets) error {
	var status metav1.Status
	if json.Unmarshal(content, &status) != nil || status.Kind != "Status" || status.Message == "" {
		status = metav1.Status{Message: fmt.Sprintf("%d %s: %s", code, http.StatusText(code), secrets.Line(string(content)))}
	}
	status.Status, status.Code = metav1.StatusFailure, int32(code)
	secrets.CleanStatus(&status)
	return &apierrors.StatusError{ErrStatus: status}
}
