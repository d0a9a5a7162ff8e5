package cachetest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb is the kind of a request.
type Verb string

// Verbs of a source.
const (
	VerbList  Verb = "list"
	VerbWatch Verb = "watch"
)

// Request is the record of one List or Watch call.
type Request struct {
	Verb      Verb
	Namespace string // of the View, "" for the source
	// Options are those of the call.
	Options metav1.ListOptions
	// Page is 1 for a list's first request and n for its n-th page; 0 for watches and invalid
	// continue tokens.
	Page int

	// Time is when the call was made, Answered when List or Watch returned; zero means not yet.
	Time     time.Time
	Answered time.Time
	// Err is the returned error.
	Err error

	// Items and ResourceVersion are those of a list's result, before MangleList.
	Items           int
	ResourceVersion string

	// Events is the number of events that a watch has delivered, including bookmarks and errors.
	// Ended is zero while it is open.
	Events int
	Ended  time.Time
}

// String returns the request and its result on one line, such as `list version="0" limit=500: 300
// objects at version 40300`.
func (r Request) String() string {
	var b strings.Builder
	b.WriteString(string(r.Verb))
	for _, part := range []struct {
		name, value string
	}{
		{"namespace", r.Namespace},
		{"version", r.Options.ResourceVersion},
		{"match", string(r.Options.ResourceVersionMatch)},
		{"labels", r.Options.LabelSelector},
		{"fields", r.Options.FieldSelector},
		{"shard", r.Options.ShardSelector},
	} {
		if part.value != "" {
			fmt.Fprintf(&b, " %s=%q", part.name, part.value)
		}
	}
	if r.Options.Limit > 0 {
		fmt.Fprintf(&b, " limit=%d", r.Options.Limit)
	}
	if r.Options.Continue != "" {
		fmt.Fprintf(&b, " page %d", r.Page)
	}
	if initial := r.Options.SendInitialEvents; initial != nil && *initial {
		b.WriteString(" streaming")
	}
	switch {
	case r.Answered.IsZero():
		b.WriteString(": not answered")
	case r.Err != nil:
		fmt.Fprintf(&b, ": %v", r.Err)
	case r.Verb == VerbList:
		fmt.Fprintf(&b, ": %d objects at version %s", r.Items, cmp.Or(r.ResourceVersion, `""`))
	case r.Ended.IsZero():
		fmt.Fprintf(&b, ": %d events, open", r.Events)
	default:
		fmt.Fprintf(&b, ": %d events in %v", r.Events, r.Ended.Sub(r.Answered))
	}
	return b.String()
}

// maxRequests bounds the record of a source that serves for hours. It is larger than any test of
// request rates needs.
const maxRequests = 1 << 16

// requests is the record of calls. The caller holds the source's lock.
type requests struct {
	log            []*Request
	lists, watches int
	// all counts all requests since the source was made, regardless of resets.
	all requestCount
}

func (r *requests) addLocked(req *Request) {
	r.all.add(req.Verb)
	switch req.Verb {
	case VerbList:
		r.lists++
	case VerbWatch:
		r.watches++
	}
	if len(r.log) == maxRequests {
		r.log = append([]*Request(nil), r.log[maxRequests/2:]...)
	}
	r.log = append(r.log, req)
}

// Requests returns the record of all calls, oldest first. Beyond 65,536 calls the older half is
// dropped; ListCalls and WatchCalls stay exact.
func (s *Source) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, 0, len(s.requests.log))
	for _, req := range s.requests.log {
		r := *req
		r.Options = *req.Options.DeepCopy()
		out = append(out, r)
	}
	return out
}

// ResetRequests empties the record and sets ListCalls and WatchCalls to zero.
func (s *Source) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = requests{all: s.requests.all}
}

// ListCalls returns the number of list calls; every page counts.
func (s *Source) ListCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.lists
}

// WatchCalls returns the number of Watch calls, failed ones included.
func (s *Source) WatchCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.watches
}

// ActiveWatches returns the number of open watches.
func (s *Source) ActiveWatches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

// arrived records a new call.
func (s *Source) arrived(verb Verb, namespace string, opts metav1.ListOptions) *Request {
	req := &Request{Verb: verb, Namespace: namespace, Options: *opts.DeepCopy(), Time: time.Now()}
	if verb == VerbList {
		req.Page = 1
		if opts.Continue != "" {
			// Zero for an invalid token.
			token, _ := decodeContinueToken(opts.Continue)
			req.Page = token.Page
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.addLocked(req)
	if s.history.version == 0 {
		// "0" in a request means any version, so it must never be returned.
		s.history.version = 1
	}
	return req
}

// answered records the result of a call.
func (s *Source) answered(req *Request, answer listAnswer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Answered = time.Now()
	req.Err = err
	req.Items = answer.items
	req.ResourceVersion = answer.version
}
