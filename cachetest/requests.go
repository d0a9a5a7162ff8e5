package cachetest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb says what a request was.
type Verb string

// The two verbs of a source.
const (
	VerbList  Verb = "list"
	VerbWatch Verb = "watch"
)

// Request is the record of one List or Watch call.
type Request struct {
	Verb      Verb
	Namespace string // of the view that was asked, "" for all
	// Options are those of the call.
	Options metav1.ListOptions
	// Page is 1 for a list's first request, n for the one that continues page n-1.
	// It is 0 for watches and for continue tokens that make no sense.
	Page int

	// Time is when the call came in, Answered when List or Watch returned; zero
	// means it has not yet. In a synctest bubble both are virtual, hence exact.
	Time     time.Time
	Answered time.Time
	// Err is what the call returned, nil for success.
	Err error

	// Items and ResourceVersion are what a list answered, before MangleList.
	Items           int
	ResourceVersion string

	// Events is how many events a watch has delivered so far, bookmarks and errors
	// included, and Ended when it ended; zero means it is still open.
	Events int
	Ended  time.Time
}

// maxRequests bounds the log, so that a source that serves for hours does not
// grow with it. No test of request rates comes near.
const maxRequests = 1 << 16

// requests is the log of what was asked. The caller holds the source's lock.
type requests struct {
	log            []*Request
	lists, watches int
	// all counts what came since the source was made, whatever was reset.
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

// Requests returns the record of all calls in the order they came in. Of more
// than 65,536 only the later half or more is kept; the counters are always exact.
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

// ResetRequests empties the record and sets the counters of calls to zero.
func (s *Source) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = requests{all: s.requests.all}
}

// ListCalls returns how often List was called; every page counts.
func (s *Source) ListCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.lists
}

// WatchCalls returns how often Watch was called, refused calls included.
func (s *Source) WatchCalls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.watches
}

// ActiveWatches returns how many watches are open.
func (s *Source) ActiveWatches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

// arrived records a call that has just come in.
func (s *Source) arrived(verb Verb, namespace string, opts metav1.ListOptions) *Request {
	req := &Request{Verb: verb, Namespace: namespace, Options: *opts.DeepCopy(), Time: time.Now()}
	if verb == VerbList {
		req.Page = 1
		if opts.Continue != "" {
			// Zero, if the token makes no sense.
			token, _ := decodeContinueToken(opts.Continue)
			req.Page = token.Page
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests.addLocked(req)
	if s.history.version == 0 {
		// Version "0" in a request means any version, so it must never be an answer.
		s.history.version = 1
	}
	return req
}

// answered records how a call was answered.
func (s *Source) answered(req *Request, answer listAnswer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Answered, req.Err = time.Now(), err
	req.Items, req.ResourceVersion = answer.items, answer.version
}
