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

// Ranges is a sorted list of ranges that neither overlap nor touch. Union returns one. nil is empty.
type Ranges []Range

// Union returns the hashes that are in at least one range.
func Union(ranges ...Range) Ranges {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var all Ranges
	for _, r := range sorted {
		switch last := len(all) - 1; {
		case r.First > r.Last: // empty
		case last >= 0 && (all[last].Last == math.MaxUint64 || r.First <= all[last].Last+1):
			all[last].Last = max(all[last].Last, r.Last)
		default:
			all = append(all, r)
		}
	}
	return all
}

// Everything returns the range of all hashes.
func Everything() Ranges { return Ranges{{0, math.MaxUint64}} }

// Split returns n ranges of the same size that together contain all hashes. It panics if n is not positive.
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
func Hash(obj metav1.Object) uint64 { return hashOf(obj.GetUID(), obj.GetNamespace(), obj.GetName()) }

func hashOf(uid types.UID, namespace, name string) uint64 {
	const offset = 14695981039346656037
	if uid != "" {
		return fnv1a(offset, string(uid))
	}
	// Names often differ only in their last characters, which barely change the highest bits of FNV-1a. So the hash is
	// mixed by the final steps of splitmix64.
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

// Parse is the inverse of String, for sources that apply ListOptions.ShardSelector themselves. It accepts spaces where
// API servers do; the field must be object.metadata.uid.
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
	last := uint64(math.MaxUint64)
	if end := strings.TrimSpace(fields[2]); end != "'"+everythingEnd+"'" {
		if last, err = parseHash(end); err != nil {
			return Range{}, err
		}
		last-- // 0 becomes the largest number, which is refused below
		if last == math.MaxUint64 {
			return Range{}, fmt.Errorf("range %.100q is empty", term)
		}
	}
	if first > last {
		return Range{}, fmt.Errorf("range %.100q is empty", term)
	}
	return Range{first, last}, nil
}

// parseHash parses a hash of 16 lower-case hexadecimal digits.
func parseHash(text string) (uint64, error) {
	digits := strings.TrimSpace(text)
	if len(digits) != len("'0x0123456789abcdef'") || digits[:3] != "'0x" || digits[19] != '\'' || strings.ToLower(digits) != digits {
		return 0, fmt.Errorf("%.100q is not of the form '0x0123456789abcdef'", text)
	}
	hash, err := strconv.ParseUint(digits[3:19], 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%.100q is not of the form '0x0123456789abcdef'", text)
	}
	return hash, nil
}
