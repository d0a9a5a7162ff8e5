package footprint

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache/internal/inspect"
	"github.com/watchmirror/cache/internal/table"
)

// survey collects what is known about the measured objects.
type survey struct {
	view       inspect.View
	meter      *meter
	sizes      []measured
	namespaces map[string]*Share
	types      map[string]*Share
}

// measured is a measured object.
type measured struct {
	entry table.Entry
	bytes int64
}

func newSurvey(view inspect.View) *survey {
	return &survey{
		view:       view,
		meter:      newMeter(),
		namespaces: map[string]*Share{},
		types:      map[string]*Share{},
	}
}

func (s *survey) add(entry table.Entry) {
	object := entry.Object()
	bytes := s.meter.measure(object)
	s.sizes = append(s.sizes, measured{entry, bytes})
	addShare(s.types, typeName(object), bytes)
	namespace, _ := entry.Key().Parts()
	addShare(s.namespaces, namespace, bytes)
}

func addShare(shares map[string]*Share, name string, bytes int64) {
	share := shares[name]
	if share == nil {
		share = &Share{Name: name}
		shares[name] = share
	}
	share.Objects++
	share.Bytes += bytes
}

// typeName returns the Go type of an object, and the kind of an unstructured one.
func typeName(object any) string {
	name := reflect.TypeOf(object).String()
	u, isUnstructured := object.(*unstructured.Unstructured)
	if !isUnstructured || u == nil {
		return name
	}
	version, _ := u.Object["apiVersion"].(string)
	kind, _ := u.Object["kind"].(string)
	return strings.TrimSpace(name + " " + strings.TrimPrefix(version+"/"+kind, "/"))
}

// largestObjects is the length of Report.Largest.
const largestObjects = 10

func (s *survey) report(about about) *Report {
	scale := float64(s.view.Len) / float64(len(s.sizes))
	fields, bytes := s.meter.fields(scale)
	slices.SortStableFunc(s.sizes, func(a, b measured) int { return cmp.Compare(b.bytes, a.bytes) })
	report := &Report{
		Name:            about.name,
		ResourceVersion: s.view.Version,
		Incomplete:      about.incomplete,
		Objects:         s.view.Len,
		Sampled:         len(s.sizes),
		Bytes:           bytes,
		MarginBytes:     s.margin(),
		TableBytes:      s.view.TableBytes,
		BacklogBytes:    backlogBytes(about.handlers),
		PerObject:       s.perObject(bytes),
		Fields:          fields,
	}
	for _, one := range s.sizes[:min(len(s.sizes), largestObjects)] {
		report.Largest = append(report.Largest, Object{one.entry.Key().String(), one.bytes})
	}
	report.Namespaces = s.shares(s.namespaces, bytes)
	report.Types = s.shares(s.types, bytes)
	report.Hints = report.hints()
	return report
}

// margin returns half the width of the interval that has the true sum in 95 of 100 samples.
func (s *survey) margin() int64 {
	count := float64(len(s.sizes))
	whole := float64(s.view.Len)
	mean := s.measuredBytes() / count
	switch len(s.sizes) {
	case s.view.Len:
		return 0
	case 1:
		return int64(mean * whole) // one object says nothing about the others
	}
	squares := 0.0
	for _, one := range s.sizes {
		squares += (float64(one.bytes) - mean) * (float64(one.bytes) - mean)
	}
	deviation := math.Sqrt(squares / (count - 1))
	return int64(1.96 * whole * deviation / math.Sqrt(count) * math.Sqrt(1-count/whole))
}

func (s *survey) measuredBytes() float64 {
	sum := 0.0
	for _, one := range s.sizes {
		sum += float64(one.bytes)
	}
	return sum
}

// perObject returns the distribution of the sizes, which are sorted, largest first.
func (s *survey) perObject(bytes int64) Sizes {
	last := len(s.sizes) - 1
	return Sizes{
		Mean: bytes / int64(s.view.Len),
		P50:  s.sizes[last-last/2].bytes,
		P99:  s.sizes[last-last*99/100].bytes,
		Max:  s.sizes[0].bytes,
	}
}

// shares returns the shares of the whole, which were those of the measured objects.
func (s *survey) shares(of map[string]*Share, bytes int64) []Share {
	factor := float64(bytes) / max(s.measuredBytes(), 1)
	scale := float64(s.view.Len) / float64(len(s.sizes))
	shares := []Share{}
	for _, share := range of {
		shares = append(shares, Share{
			Name:    share.Name,
			Objects: int(math.Round(scale * float64(share.Objects))),
			Bytes:   int64(factor * float64(share.Bytes)),
		})
	}
	slices.SortFunc(shares, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return shares
}
