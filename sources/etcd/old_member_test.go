package etcd

import (
	"context"
	"net"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/sources"
)

// oldMember is a member as of etcd 3.5.15: a watch that begins at the compacted revision lacks the
// deletion at this revision.
type oldMember struct {
	pb.UnimplementedWatchServer
	events    []*mvccpb.Event
	compacted int64
}

func (m *oldMember) present() int64 { return m.events[len(m.events)-1].Kv.ModRevision }

func (m *oldMember) Watch(stream pb.Watch_WatchServer) error {
	request, err := stream.Recv()
	if err != nil {
		return err
	}
	from := request.GetCreateRequest().StartRevision
	header := &pb.ResponseHeader{Revision: m.present()}
	responses := []*pb.WatchResponse{{Header: header, Created: true}}
	if from < m.compacted {
		responses = append(responses,
			&pb.WatchResponse{Header: header, Canceled: true, CompactRevision: m.compacted})
	} else {
		responses = append(responses, &pb.WatchResponse{Header: header, Events: m.since(from)})
	}
	for _, response := range responses {
		if err := stream.Send(response); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func (m *oldMember) since(from int64) (events []*mvccpb.Event) {
	for _, e := range m.events {
		isLost := e.Kv.ModRevision == m.compacted && e.Type == mvccpb.Event_DELETE
		if e.Kv.ModRevision >= from && !isLost {
			events = append(events, e)
		}
	}
	return events
}

// start serves the member, and returns a client.
func (m *oldMember) start(t *testing.T) *clientv3.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterWatchServer(server, m)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
		<-served
	})
	return client
}

func changeOf(kind mvccpb.Event_EventType, revision int64) *mvccpb.Event {
	kv := &mvccpb.KeyValue{Key: []byte("keys/a"), ModRevision: revision, CreateRevision: 2}
	return &mvccpb.Event{Type: kind, Kv: kv, PrevKv: kv}
}

func TestADeletionAtTheCompactedRevisionIsNotLost(t *testing.T) {
	member := &oldMember{compacted: 4, events: []*mvccpb.Event{
		changeOf(mvccpb.Event_PUT, 2),
		changeOf(mvccpb.Event_PUT, 3),
		changeOf(mvccpb.Event_DELETE, 4),
		changeOf(mvccpb.Event_PUT, 5),
	}}
	text := func(value []byte) (string, error) { return string(value), nil }
	source := NewSource(member.start(t), "keys/", sources.Values(text))
	first := func(version string) watch.Event {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, err := source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		return <-w.ResultChan()
	}
	event := first("3")
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("a watch after 3 delivers %s %v", event.Type, event.Object)
	}
	event = first("4")
	object, ok := event.Object.(*sources.Entry[string])
	if event.Type != watch.Modified || !ok || object.ResourceVersion != "5" {
		t.Errorf("a watch after 4 delivers %s %v", event.Type, event.Object)
	}
}
