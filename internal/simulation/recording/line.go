package recording

import "time"

// What a line is about.
const (
	// Run is the first line: Seed, Mirrors and, as Objects, what the source holds.
	Run = "run"
	// Step is a step of the script: Step, and what of Key, What, N, For and Mirror it has.
	Step = "step"
	// List and Watch are questions of a reflector: Ask.
	List  = "list"
	Watch = "watch"
	// Listed is the answer to a List: Objects, Version and, if there are more pages, More.
	Listed = "listed"
	// Refused is a question that was answered with an error: Failure.
	Refused = "refused"
	// Event is one of a watch: Type and an object. Of one that has no metadata that could
	// be read there is no key.
	Event = "event"
	// Bookmark is an event with Version only; More is false for the one that ends the
	// initial events of a streaming list, and true for all others.
	Bookmark = "bookmark"
	// Failed is an error on a stream: Failure.
	Failed = "failed"
	// Ended is a watch that has ended, on either side.
	Ended = "ended"
	// Answer is what the server sent over the network: Answer.
	Answer = "answer"
)

// Line is one thing that happened in a run of the simulation. Fields that its Do does not
// name are empty.
type Line struct {
	// At is when, in virtual time since the run began.
	At time.Duration `json:"at"`
	Do string        `json:"do"`
	// Source is the name of what a reflector reads: one for each reflector of the run.
	Source string `json:"source,omitempty"`

	Seed    uint64   `json:"seed,omitempty"`
	Mirrors []Mirror `json:"mirrors,omitempty"`

	Step   string        `json:"step,omitempty"`
	Key    string        `json:"key,omitempty"`
	What   string        `json:"what,omitempty"`
	N      int           `json:"n,omitempty"`
	For    time.Duration `json:"for,omitempty"`
	Mirror int           `json:"mirror,omitempty"`

	Ask     *Ask     `json:"ask,omitempty"`
	Version uint64   `json:"version,omitempty"`
	More    bool     `json:"more,omitempty"`
	Objects []Object `json:"objects,omitempty"`
	Type    string   `json:"type,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	Answer  *Body    `json:"answer,omitempty"`
}

// Mirror is one thing that mirrored the source. The sources of its reflectors are its name,
// with a slash and the namespace behind it if it has several.
type Mirror struct {
	Name     string        `json:"name"`
	Kind     string        `json:"kind"`
	Resync   time.Duration `json:"resync,omitempty"`
	Handlers []Handler     `json:"handlers,omitempty"`
}

// Handler is one that a mirror has from the beginning on.
type Handler struct {
	Coalesced bool `json:"coalesced,omitempty"`
	// Slow is how long each of its calls takes.
	Slow time.Duration `json:"slow,omitempty"`
}

// Ask is the options of a List or a Watch. Now is the version that the source was at.
type Ask struct {
	Now       uint64 `json:"now"`
	Version   string `json:"version,omitempty"`
	Match     string `json:"match,omitempty"`
	Limit     int64  `json:"limit,omitempty"`
	Continue  bool   `json:"continue,omitempty"`
	Streaming bool   `json:"streaming,omitempty"`
}

// Object is a state of an object.
type Object struct {
	// Key is namespace and name; empty if they could not be read.
	Key     string `json:"key,omitempty"`
	Version uint64 `json:"version,omitempty"`
	// UID tells an object from another one that has its name.
	UID string `json:"uid,omitempty"`
	// Serial is different for each state that was written; 0 if it could not be read.
	Serial int `json:"serial,omitempty"`
	// Bad says which function cannot take it: one of the simulation's words for that.
	// UndecodableObject is one that came in the place of what could not be decoded.
	Bad       string `json:"bad,omitempty"`
	Undecoded bool   `json:"undecoded,omitempty"`
	// Unwanted is one that the transform drops.
	Unwanted bool `json:"unwanted,omitempty"`
}

// Failure is an error, and the Status that it is, if it is one.
type Failure struct {
	Code              int32  `json:"code,omitempty"`
	Reason            string `json:"reason,omitempty"`
	Message           string `json:"message,omitempty"`
	RetryAfterSeconds int32  `json:"retryAfterSeconds,omitempty"`
	Cause             string `json:"cause,omitempty"`
	CauseMessage      string `json:"causeMessage,omitempty"`
}

// Body is an answer of the server. A long one is cut at MaxBody.
type Body struct {
	Method      string `json:"method"`
	Path        string `json:"path"`
	Query       string `json:"query,omitempty"`
	Code        int    `json:"code"`
	ContentType string `json:"contentType,omitempty"`
	RetryAfter  string `json:"retryAfter,omitempty"`
	Date        string `json:"date,omitempty"`
	Content     []byte `json:"content,omitempty"`
	// Cut is true if not all of the content is here.
	Cut bool `json:"cut,omitempty"`
}

// MaxBody is how many bytes are kept of an answer: more than an input of a corpus may have.
const MaxBody = 8 << 10
