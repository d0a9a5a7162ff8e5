package sharding

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Range is a range of hashes, both ends included.
type Range struct {
	First, Last uint64
}

// Ranges is a sorted list of ranges that neither overlap nor touch. Union returns one. nil is
// empty.
type Ranges []Range

// Union returns the hashes that are in at least one range.
func Union(ranges ...Range) Ranges {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var all Ranges
	for _, r := range sorted {
		if r.First > r.Last { // empty
			continue
		}
		last := len(all) - 1
		if last >= 0 && all[last].touches(r) {
			all[last].Last = max(all[last].Last, r.Last)
			continue
		}
		all = append(all, r)
	}
	return all
}

// touches reports whether a range that begins at or after this one has no gap to it.
func (r Range) touches(next Range) bool {
	return r.Last == math.MaxUint64 || next.First <= r.Last+1
}

// Everything returns the range of all hashes.
func Everything() Ranges { return Ranges{{0, math.MaxUint64}} }

// Split returns n ranges of the same size that together contain all hashes. It panics if n is not
// positive.
func Split(n int) []Range {
	if n <= 0 {
		panic(fmt.Sprintf("sharding: Split into %d parts", n))
	}
	parts := make([]Range, n)
	for i := range parts {
		parts[i].First, _ = bits.Div64(uint64(i), 0, uint64(n)) // i * 2^64 / n
		parts[i].Last = math.MaxUint64
		if i > 0 {
			parts[i-1].Last = parts[i].First - 1
		}
	}
	return parts
}

// Contains reports whether a hash is in the ranges.
func (r Ranges) Contains(hash uint64) bool {
	for _, rng := range r {
		if rng.First <= hash && hash <= rng.Last {
			return true
		}
	}
	return false
}

// Includes reports whether an object belongs to the ranges.
func (r Ranges) Includes(obj metav1.Object) bool { return r.Contains(Hash(obj)) }

// Hash returns the hash of an object's UID or, without a UID, of its key.
func Hash(obj metav1.Object) uint64 {
	return hashOf(obj.GetUID(), obj.GetNamespace(), obj.GetName())
}

func hashOf(uid types.UID, namespace, name string) uint64 {
	const offset = 14695981039346656037
	if uid != "" {
		return fnv1a(offset, string(uid))
	}
	// Names often differ only in their last characters, which barely change the highest bits of
	// FNV-1a. So the hash is mixed by the final steps of splitmix64.
	hash := fnv1a(fnv1a(fnv1a(offset, namespace), "/"), name)
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	return hash ^ hash>>31
}

// fnv1a is hash/fnv's New64a without its allocations.
func fnv1a(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 1099511628211
	}
	return hash
}

// everythingEnd is 2^64, the end of the last range.
const everythingEnd = "0x10000000000000000"

// String returns the ranges as a Kubernetes shardSelector, empty if there are none.
func (r Ranges) String() string {
	var text strings.Builder
	for i, rng := range r {
		if i > 0 {
			text.WriteString(" || ")
		}
		end := everythingEnd
		if rng.Last < math.MaxUint64 {
			end = fmt.Sprintf("0x%016x", rng.Last+1)
		}
		fmt.Fprintf(&text, "shardRange(object.metadata.uid, '0x%016x', '%s')", rng.First, end)
	}
	return text.String()
}

// Parse is the inverse of String, for sources that apply ListOptions.ShardSelector themselves. It
// accepts spaces where API servers do; the field must be object.metadata.uid.
func Parse(selector string) (Ranges, error) {
	var ranges []Range
	if strings.TrimSpace(selector) == "" {
		return nil, nil
	}
	for term := range strings.SplitSeq(selector, "||") {
		rng, err := parseRange(term)
		if err != nil {
			return nil, fmt.Errorf("shard selector %.200q: %w", selector, err)
		}
		ranges = append(ranges, rng)
	}
	return Union(ranges...), nil
}

func parseRange(term string) (Range, error) {
	arguments, isCall := strings.CutPrefix(strings.TrimSpace(term), "shardRange")
	arguments, hasOpen := strings.CutPrefix(strings.TrimSpace(arguments), "(")
	arguments, hasClose := strings.CutSuffix(arguments, ")")
	fields := strings.Split(arguments, ",")
	if !isCall || !hasOpen || !hasClose || len(fields) != 3 {
		return Range{}, fmt.Errorf("%.100q is not shardRange(field, start, end)", term)
	}
	if field := strings.TrimSpace(fields[0]); field != "object.metadata.uid" {
		return Range{}, fmt.Errorf("field %.100q is not object.metadata.uid", field)
	}
	first, err := parseHash(fields[1])
	if err != nil {
		return Range{}, err
	}
	if strings.TrimSpace(fields[2]) == "'"+everythingEnd+"'" {
		return Range{first, math.MaxUint64}, nil
	}
	end, err := parseHash(fields[2])
	if err != nil {
		return Range{}, err
	}
	if first >= end {
		return Range{}, fmt.Errorf("range %.100q is empty", term)
	}
	return Range{first, end - 1}, nil
}

// parseHash parses a hash of 16 lower-case hexadecimal digits.
func parseHash(text string) (uint64, error) {
	digits, hasPrefix := strings.CutPrefix(strings.TrimSpace(text), "'0x")
	digits, hasSuffix := strings.CutSuffix(digits, "'")
	hash, err := strconv.ParseUint(digits, 16, 64)
	isLower := strings.ToLower(digits) == digits
	if !hasPrefix || !hasSuffix || len(digits) != 16 || !isLower || err != nil {
		return 0, fmt.Errorf("%.100q is not of the form '0x0123456789abcdef'", text)
	}
	return hash, nil
}
