package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Counts are the requests that a proxy has received, and how often it has failed them or done
// something to an event. Each page of a list is one of Lists; those after the first are Pages, too.
type Counts struct{ Lists, Pages, Watches, Faults int }

// Total is the number of all requests.
func (c Counts) Total() int { return c.Lists + c.Watches }

// Proxy passes requests on to an API server. Its methods may be called concurrently.
type Proxy struct {
	// URL is where the proxy is reached, by HTTP/1.1 without TLS.
	URL string

	upstream string
	client   *http.Client
	address  string

	mu      sync.Mutex
	server  *http.Server
	serving sync.WaitGroup
	plan    []Fault
	turned  chan struct{} // closed when the plan changes
	next    int           // the number of the next request, which selects from the plan
	counts  Counts
}

// New starts a proxy to the server of a configuration.
func New(config *rest.Config) (*Proxy, error) {
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig, DisableCompression: true})
	if err != nil {
		return nil, err
	}
	p := &Proxy{upstream: config.Host, client: &http.Client{Transport: transport}, address: "127.0.0.1:0", turned: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.openLocked()
}

func (p *Proxy) openLocked() error {
	listener, err := net.Listen("tcp", p.address)
	for begin := time.Now(); errors.Is(err, syscall.EADDRINUSE) && time.Since(begin) < time.Minute; {
		time.Sleep(10 * time.Millisecond) // while the port was closed, a connection may have used it
		listener, err = net.Listen("tcp", p.address)
	}
	if err != nil {
		return err
	}
	p.address = listener.Addr().String()
	p.URL = "http://" + p.address
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.server = server
	p.serving.Go(func() { _ = server.Serve(listener) })
	return nil
}

// Close cuts all connections and stops the proxy.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.server.Close()
	p.serving.Wait()
	p.client.CloseIdleConnections()
}

// Turn makes the faults of a plan happen, one for each request in turn, until the next call; none
// ends all. Faults that are for requests cut the open watches first.
func (p *Proxy) Turn(plan ...Fault) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	refused := len(p.plan) > 0 && p.plan[0].Refuse
	p.plan, p.next = plan, 0
	if len(plan) > 0 {
		p.counts = Counts{}
	}
	if refused {
		if err := p.openLocked(); err != nil {
			return err
		}
	}
	if len(plan) > 0 && (plan[0].Refuse || plan[0].Drop || plan[0].Status > 0 || plan[0].Delay > 0) {
		_ = p.server.Close() // with all of its connections
		p.serving.Wait()
		if !plan[0].Refuse {
			if err := p.openLocked(); err != nil {
				return err
			}
		}
	}
	close(p.turned)
	p.turned = make(chan struct{})
	return nil
}

// Counts returns the requests since a plan with faults began.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// hit counts a fault that has happened.
func (p *Proxy) hit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Faults++
}

// assign returns the fault for a request.
func (p *Proxy) assign(watch, page bool) (Fault, int, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if watch {
		p.counts.Watches++
	} else {
		p.counts.Lists++
	}
	if page {
		p.counts.Pages++
	}
	return p.faultLocked(watch)
}

func (p *Proxy) faultLocked(watch bool) (Fault, int, chan struct{}) {
	number := p.next
	if len(p.plan) == 0 {
		return Fault{}, number, p.turned
	}
	p.next++
	if f := p.plan[number%len(p.plan)]; f.of(watch) {
		return f, number, p.turned
	}
	return Fault{}, number, p.turned
}

// reassign returns the fault for a watch that was open when the plan changed.
func (p *Proxy) reassign() (Fault, int, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faultLocked(true)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watch := r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1"
	fault, number, turned := p.assign(watch, r.URL.Query().Has("continue"))
	wait(r, fault.Delay, nil)
	if fault.Drop || fault.Status > 0 || fault.Delay > 0 || !watch && (fault.Bytes > 0 || fault.DamagedList > 0) {
		p.hit()
	}
	switch {
	case fault.Drop:
		panic(http.ErrAbortHandler)
	case fault.Status > 0:
		refuse(w, fault)
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, p.upstream+r.URL.RequestURI(), r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	if watch {
		request.Header.Set("Accept-Encoding", "identity") // a server compresses watches too, which hides the frames
	}
	response, err := p.client.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	if watch && response.StatusCode == http.StatusOK {
		w.WriteHeader(response.StatusCode)
		s := &stream{proxy: p, w: w, r: r, fault: fault, number: number, turned: turned}
		s.pass(response.Body)
		return
	}
	passList(w, response, fault)
}

func refuse(w http.ResponseWriter, fault Fault) {
	status := apierrors.NewGenericServerResponse(fault.Status, "get", schema.GroupResource{}, "", "fault proxy", fault.RetryAfter, true).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, _ := json.Marshal(status)
	w.Header().Set("Content-Type", "application/json")
	if fault.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
	}
	w.WriteHeader(fault.Status)
	_, _ = w.Write(body)
}

// passList passes on an answer that ends, cut or damaged where the fault says so.
func passList(w http.ResponseWriter, response *http.Response, fault Fault) {
	if response.StatusCode != http.StatusOK || fault.Bytes == 0 && fault.DamagedList == 0 {
		w.WriteHeader(response.StatusCode)
		if _, err := io.Copy(w, response.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		return
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(response.StatusCode)
	if fault.DamagedList > 0 {
		body[int(fault.DamagedList*float64(len(body)))] = 0
	}
	if fault.Bytes > 0 && fault.Bytes < len(body) {
		_, _ = w.Write(body[:fault.Bytes])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

// wait pauses, for an event until the plan changes, and no longer than the request lasts.
func wait(r *http.Request, pause time.Duration, turned chan struct{}) {
	select {
	case <-time.After(pause):
	case <-turned:
	case <-r.Context().Done():
	}
}

// stream is a watch that passes.
type stream struct {
	proxy  *Proxy
	w      http.ResponseWriter
	r      *http.Request
	fault  Fault
	number int
	turned chan struct{}
	events int // since the fault began
}

// pass passes on frame by frame until the server or a fault ends the watch.
func (s *stream) pass(body io.Reader) {
	s.flush()
	frames, failed := make(chan []byte), make(chan error, 1)
	go func() {
		reader := bufio.NewReader(body)
		for {
			frame, err := reader.ReadBytes('\n')
			if err != nil {
				failed <- err
				return
			}
			select {
			case frames <- frame:
			case <-s.r.Context().Done():
				return
			}
		}
	}()
	for {
		if !s.awaitSound() {
			return
		}
		select {
		case <-s.r.Context().Done():
			return
		case <-s.turned:
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return
			}
			panic(http.ErrAbortHandler)
		case frame := <-frames: // perhaps of a change that was made after the plan's
			if !s.awaitSound() || !s.frame(frame) {
				return
			}
		}
	}
}

// awaitSound takes the fault of the newest plan, and waits until it is not silence. It returns
// false if the request has ended.
func (s *stream) awaitSound() bool {
	for {
		select {
		case <-s.turned:
			s.turn()
			continue
		default:
		}
		if s.fault.Then != Silence || s.events < s.fault.Events {
			return true
		}
		s.proxy.hit()
		select {
		case <-s.turned:
		case <-s.r.Context().Done():
			return false
		}
	}
}

// turn takes the fault of a new plan.
func (s *stream) turn() {
	s.fault, s.number, s.turned = s.proxy.reassign()
	s.events = 0
}

// frame passes on one frame, and returns false if the watch has ended normally.
func (s *stream) frame(frame []byte) bool {
	if bytes.HasPrefix(frame, []byte(`{"type":"BOOKMARK"`)) {
		if s.fault.NoBookmarks {
			s.proxy.hit()
		} else {
			s.write(frame)
		}
		return true
	}
	wait(s.r, s.fault.Delay, s.turned)
	s.events++
	if s.events <= s.fault.Events || s.fault.Then == Nothing {
		s.write(frame)
		if s.fault.Twice {
			s.proxy.hit()
			s.write(frame)
		}
		return true
	}
	s.proxy.hit()
	switch s.fault.Then {
	case Cut:
		panic(http.ErrAbortHandler)
	case CutInside:
		s.write(frame[:len(frame)/2])
		panic(http.ErrAbortHandler)
	case Error:
		status := apierrors.NewGenericServerResponse(s.fault.Code, "watch", schema.GroupResource{}, "", "fault proxy", 0, true).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		text, _ := json.Marshal(status)
		s.write(fmt.Appendf(nil, "{\"type\":\"ERROR\",\"object\":%s}\n", text))
		return false
	case End:
		return false
	case Freeze:
		s.write(frame[:len(frame)/2])
		<-s.r.Context().Done()
		return false
	case Zero, Quote:
		s.write(s.damaged(frame))
		s.events = 0
		s.fault.Then = Nothing // one frame of each watch
	}
	return true // lost
}

// damaged is a frame with one damaged byte, at the place for this watch.
func (s *stream) damaged(frame []byte) []byte {
	at := int(s.fault.Damage[s.number%len(s.fault.Damage)] * float64(len(frame)-2))
	if s.fault.Then == Zero {
		frame[at] = 0
		return frame
	}
	if next := bytes.IndexByte(frame[at:], '"'); next >= 0 {
		frame[at+next] = 'x'
	}
	return frame
}

func (s *stream) write(frame []byte) {
	if _, err := s.w.Write(frame); err != nil {
		panic(http.ErrAbortHandler)
	}
	s.flush()
}

func (s *stream) flush() {
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
}
