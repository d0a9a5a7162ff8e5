// Package kubelease stores the leases of package sharding as Lease objects of the Kubernetes API
// (coordination.k8s.io/v1).
//
// The replicas' role needs the verbs list, create, update and delete for leases in one namespace. kubectl get leases
// shows the holder of each range.
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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

// Leases is a store of leases for one group of replicas. New returns one. Its methods may be called concurrently.
type Leases struct {
	client    http.Client
	authorize func(*http.Request) error
	url       string
	group     string
}

var _ sharding.Leases = (*Leases)(nil)

// groupLabel is the label of a group's Lease objects.
const groupLabel = "watchmirror.io/shard-group"

// New returns a store. Of api it uses BaseURL, Namespace, HTTPClient, UserAgent and Authorize, so api may be the result
// of kubeapi.InCluster with a Namespace. The names of the Lease objects begin with group, which must be unique in the
// namespace.
func New(api kubeapi.Options, group string) (*Leases, error) {
	switch base, err := url.Parse(api.BaseURL); {
	case err != nil || base.Host == "":
		return nil, fmt.Errorf("kubelease: Options.BaseURL is no address of a server: %q", api.BaseURL)
	case api.Namespace == "" || group == "":
		return nil, errors.New("kubelease: Options.Namespace or group is empty")
	}
	l := &Leases{authorize: api.Authorize, group: group}
	l.url = strings.TrimSuffix(api.BaseURL, "/") + "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(api.Namespace) + "/leases"
	if api.HTTPClient != nil {
		l.client = *api.HTTPClient
	}
	return l, nil
}

// object has the fields of a Lease that are used.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		HolderIdentity       string           `json:"holderIdentity,omitempty"`
		LeaseDurationSeconds int              `json:"leaseDurationSeconds,omitempty"`
		RenewTime            metav1.MicroTime `json:"renewTime"`
	} `json:"spec"`
}

// list is a LeaseList.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []object `json:"items"`
}

// durationAnnotation has the exact duration, since a Lease's is in whole seconds.
const durationAnnotation = "watchmirror.io/lease-duration"

// List implements sharding.Leases. It requests the newest state, without paging.
func (l *Leases) List(ctx context.Context) ([]sharding.Lease, error) {
	var answer list
	query := url.Values{"labelSelector": {groupLabel + "=" + l.group}}
	if err := l.call(ctx, http.MethodGet, "?"+query.Encode(), nil, &answer); err != nil {
		return nil, err
	}
	var all []sharding.Lease
	for _, o := range answer.Items {
		duration, err := time.ParseDuration(o.Annotations[durationAnnotation])
		if err != nil {
			duration = time.Duration(o.Spec.LeaseDurationSeconds) * time.Second
		}
		all = append(all, sharding.Lease{
			Name: strings.TrimPrefix(o.Name, l.group+"-"), Holder: o.Spec.HolderIdentity, Duration: duration, Version: o.ResourceVersion,
		})
	}
	return all, nil
}

// Put implements sharding.Leases.
func (l *Leases) Put(ctx context.Context, lease sharding.Lease) (version string, err error) {
	o := object{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	o.Name, o.ResourceVersion = l.group+"-"+lease.Name, lease.Version
	o.Labels = map[string]string{groupLabel: l.group}
	o.Annotations = map[string]string{durationAnnotation: lease.Duration.String()}
	o.Spec.HolderIdentity, o.Spec.RenewTime = lease.Holder, metav1.NowMicro()
	o.Spec.LeaseDurationSeconds = max(1, int(lease.Duration.Round(time.Second)/time.Second)) // 0 is invalid
	method, path := http.MethodPut, "/"+o.Name
	if lease.Version == "" {
		method, path = http.MethodPost, ""
	}
	var answer object
	err = l.call(ctx, method, path, o, &answer)
	return answer.ResourceVersion, err
}

// Delete implements sharding.Leases.
func (l *Leases) Delete(ctx context.Context, lease sharding.Lease) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &lease.Version}}
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	return l.call(ctx, http.MethodDelete, "/"+l.group+"-"+lease.Name, options, nil)
}

// mostAnswer bounds a response; a group has some hundred leases of less than a KiB.
const mostAnswer = 16 << 20

// call makes a request. It returns sharding.ErrLeaseConflict for a conflict and for a missing lease.
func (l *Leases) call(ctx context.Context, method, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, l.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	if l.authorize != nil {
		if err := l.authorize(request); err != nil {
			return fmt.Errorf("authorizing the %s of leases: %w", method, err)
		}
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("%s of leases: %w", method, err)
	case response.StatusCode == http.StatusConflict, response.StatusCode == http.StatusNotFound && method != http.MethodGet && path != "":
		return fmt.Errorf("%s of lease %s: %w", method, path, sharding.ErrLeaseConflict)
	case response.StatusCode < 200 || response.StatusCode > 299:
		var status metav1.Status
		_ = json.Unmarshal(content, &status) // it may be something else
		return fmt.Errorf("%s of leases: %s: %.200q", method, response.Status, status.Message)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("%s of leases: %w", method, err)
	}
	return nil
}
