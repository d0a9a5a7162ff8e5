package local

import (
	"fmt"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pages is a Source that honours a limit. It keeps no objects: each page is made when it is
// asked for, as a client makes them of a response, unless Prepare made it before. What is sent
// to the watch does not become part of the list; only Change changes that.
type Pages struct {
	*Source
	objects int

	mu sync.Mutex
	// prepared are pages by where they begin; each is handed out once.
	prepared map[int]*metav1.PartialObjectMetadataList
	// step is which objects Change has changed: each step-th, 0 for none.
	step  int
	lists int
}

// NewPages makes a source of so many objects.
func NewPages(objects int) *Pages {
	p := &Pages{objects: objects, prepared: map[int]*metav1.PartialObjectMetadataList{}}
	p.Source = &Source{stream: make(stream), list: p.listPage}
	return p
}

// Prepare makes the pages of one list beforehand, so that making them is no part of what
// is measured.
func (p *Pages) Prepare(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at := 0; at < p.objects; at += limit {
		p.prepared[at] = p.page(at, limit)
	}
}

// Change gives each step-th object another version in the lists from now on, and returns
// how many that are.
func (p *Pages) Change(step int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step
	return (p.objects + step - 1) / step
}

// Lists is how many lists were read to their end.
func (p *Pages) Lists() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists
}

// Objects is how many there are.
func (p *Pages) Objects() int { return p.objects }

// Version is the list's at first. Changes begin behind it.
func (p *Pages) Version() uint64 { return uint64(p.objects) }

func (p *Pages) listPage(options metav1.ListOptions) (runtime.Object, error) {
	at := 0
	if options.Continue != "" {
		var err error
		at, err = strconv.Atoi(options.Continue)
		if err != nil {
			return nil, fmt.Errorf("continue: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.prepared[at]
	delete(p.prepared, at)
	if page == nil {
		page = p.page(at, int(options.Limit))
	}
	if page.Continue == "" {
		p.lists++
	}
	return page, nil
}

// page makes the page that begins at an object.
func (p *Pages) page(at, limit int) *metav1.PartialObjectMetadataList {
	end := p.objects
	page := &metav1.PartialObjectMetadataList{}
	page.ResourceVersion = strconv.FormatUint(p.Version(), 10)
	if p.step > 0 {
		page.ResourceVersion = strconv.FormatUint(2*p.Version(), 10)
	}
	if limit > 0 && at+limit < p.objects {
		end = at + limit
		page.Continue = strconv.Itoa(end)
	}
	page.Items = make([]Object, end-at)
	for i := at; i < end; i++ {
		version := uint64(i + 1)
		if p.step > 0 && i%p.step == 0 {
			version += p.Version()
		}
		fill(&page.Items[i-at], i, version)
	}
	return page
}
