package mutation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzFieldChanges compares two states of an object and checks the reported fields: none exactly if
// reflect.DeepEqual finds no difference, otherwise those that a comparison of maps, lists and
// scalars finds, path by path.
//
// The script makes a value, and then another from it: each byte determines a value or its change.
// See diffScript.
func FuzzFieldChanges(f *testing.F) {
	f.Add([]byte{6, 3, 0, 6, 2, 1, 3, 7, 3, 3, 4, 5, 0, 2, 0, 0, 9, 1, 0, 10, 0, 8, 2, 0, 11})
	f.Add([]byte{7, 2, 6, 1, 2, 3, 9, 6, 1, 2, 3, 8, 0, 0, 0, 11, 4})
	f.Add([]byte(
		"\x06\x04\x00\x06\x00\x01\x07\x00\x02\x03\x05\x03\x04\x01\x00\x00\x0a\x00\x0a\x00\x08"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 300 {
			return
		}
		s := &diffScript{script: script}
		was := map[string]any{"root": s.value(0)}
		is := map[string]any{"root": s.changed(was["root"])}

		want := jsonChanges("root", was["root"], is["root"])
		got := differences(was, is)
		require.ElementsMatch(t, want, got)
		require.True(
			t,
			slices.IsSortedFunc(
				got, func(a, b change) int { return strings.Compare(a.Path, b.Path) }),
		)
		require.Equal(t, reflect.DeepEqual(was, is), len(got) == 0)
	})
}

// diffScript makes values from bytes. Lists and maps have up to four elements and are nested up to
// eight deep.
type diffScript struct{ script []byte }

func (s *diffScript) next() byte {
	if len(s.script) == 0 {
		return 0
	}
	b := s.script[0]
	s.script = s.script[1:]
	return b
}

// diffKeys are names of fields: names that follow a dot in a path, other names, and one that is
// truncated.
var diffKeys = []string{
	"a",
	"b_2",
	"2b",
	"a.b",
	"",
	"ü",
	`"`,
	"c/d",
	strings.Repeat("k", longestKey),
	strings.Repeat("l", longestKey+1),
}

func (s *diffScript) value(depth int) any {
	b := s.next()
	if depth == 8 {
		b %= 6
	}
	switch b % 10 {
	case 0:
		return nil
	case 1:
		return b > 99
	case 2:
		return int64(b)
	case 3:
		return float64(b) / 2
	case 4, 5:
		return strconv.Itoa(int(b))
	case 6, 7:
		return s.object(depth)
	case 8:
		list := make([]any, s.next()%5)
		for i := range list {
			list[i] = s.value(depth + 1)
		}
		return list
	default:
		return [...]any{map[string]any(nil), []any(nil), map[string]any{}, []any{}}[s.next()%4]
	}
}

func (s *diffScript) object(depth int) map[string]any {
	object := map[string]any{}
	for range s.next() % 5 {
		object[diffKeys[int(s.next())%len(diffKeys)]] = s.value(depth + 1)
	}
	return object
}

// changed returns a copy of a value, possibly changed.
func (s *diffScript) changed(value any) any {
	switch b := s.next(); {
	case b%16 == 11:
		return s.value(4)
	case b%16 == 12:
		return nil
	default:
		return s.copied(value, b)
	}
}

// copied returns a copy; b determines which fields are missing and which are new.
func (s *diffScript) copied(value any, b byte) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		is := map[string]any{}
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if b%16 != 8 || int(b>>4)&3 != i {
				is[key] = s.changed(value[key])
			}
		}
		if b%16 == 9 {
			is[diffKeys[int(b>>4)%len(diffKeys)]] = s.value(4)
		}
		return is
	case []any:
		if value == nil {
			return value
		}
		is := []any{}
		for _, element := range value {
			is = append(is, s.changed(element))
		}
		if b%16 == 8 {
			is = is[:len(is)/2]
		}
		if b%16 == 9 {
			is = append(is, s.value(4))
		}
		return is
	}
	return value
}

// jsonChanges compares the values at path.
func jsonChanges(path string, was, is any) (changes []change) {
	before, beforeIsMap := was.(map[string]any)
	after, afterIsMap := is.(map[string]any)
	list, wasList := was.([]any)
	newList, isList := is.([]any)
	switch {
	case was == nil && is == nil:
	case was == nil:
		return []change{{path, added}}
	case is == nil:
		return []change{{path, removed}}
	case beforeIsMap && afterIsMap && len(before)+len(after) == 0,
		wasList && isList && len(list)+len(newList) == 0:
		if !reflect.DeepEqual(was, is) { // one is nil, the other empty
			return []change{{path, changed}}
		}
	case beforeIsMap && afterIsMap:
		return mapChanges(path, before, after)
	case wasList && isList:
		for i := range max(len(list), len(newList)) {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case i >= len(list):
				changes = append(changes, change{at, added})
			case i >= len(newList):
				changes = append(changes, change{at, removed})
			default:
				changes = append(changes, jsonChanges(at, list[i], newList[i])...)
			}
		}
	case !reflect.DeepEqual(was, is):
		return []change{{path, changed}}
	}
	return changes
}

func mapChanges(path string, was, is map[string]any) (changes []change) {
	keys := slices.Collect(maps.Keys(was))
	for key := range is {
		if _, both := was[key]; !both {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		at := path + "." + key
		switch {
		case len(key) > longestKey:
			at = fmt.Sprintf("%s[%q]", path, key[:longestKey]+"…")
		case key == "" || strings.ContainsAny(key, `./"`):
			at = fmt.Sprintf("%s[%q]", path, key)
		}
		before, there := was[key]
		after, stays := is[key]
		switch {
		case !there:
			changes = append(changes, change{at, added})
		case !stays:
			changes = append(changes, change{at, removed})
		default:
			changes = append(changes, jsonChanges(at, before, after)...)
		}
	}
	return changes
}

// FuzzTypedFieldChanges compares values of types whose meaning is not that of their fields:
// quantities by their canonical text, and times by their instant. Maps of texts are compared by
// entry.
func FuzzTypedFieldChanges(f *testing.F) {
	f.Add("1", "1000m", int64(0), int64(0), "app", "web")
	f.Add("1Ki", "1024", int64(1), int64(2), "", "a")
	f.Add("0.5", "x", int64(-5), int64(5), `a"b`, "")
	f.Fuzz(func(t *testing.T, size, newSize string, since, newSince int64, label, value string) {
		if !utf8.ValidString(label) || !utf8.ValidString(value) {
			return // JSON cannot have this text
		}
		was := &machine{}
		was.Labels = map[string]string{"fixed": "x", label: value}
		was.Spec.Since = metav1.NewTime(time.Unix(since%1e9, 0).UTC())
		is := &machine{}
		is.Labels = map[string]string{"fixed": "x", value: value}
		is.Spec.Since = metav1.NewTime(time.Unix(newSince%1e9, 0).In(time.FixedZone("east", 3600)))
		var quantities [2]string
		for i, target := range []*resource.Quantity{&was.Spec.Size, &is.Spec.Size} {
			text := []string{size, newSize}[i]
			if longExponent(text) {
				return
			}
			q, err := resource.ParseQuantity(text)
			if err != nil || len(q.AsDec().String()) > 100 {
				return
			}
			*target = q
			copied := q.DeepCopy()
			quantities[i] = copied.String()
		}
		want := map[string]string{}
		for key := range was.Labels {
			if _, stays := is.Labels[key]; !stays {
				want["metadata.labels"+step(key)] = removed
			}
		}
		for key := range is.Labels {
			before, there := was.Labels[key]
			switch at := "metadata.labels" + step(key); {
			case !there:
				want[at] = added
			case before != is.Labels[key]:
				want[at] = changed
			}
		}
		if since%1e9 != newSince%1e9 {
			want["spec.since"] = changed
		}
		if quantities[0] != quantities[1] {
			want["spec.size"] = changed
		}
		got := map[string]string{}
		for _, change := range differences(read(t, was), read(t, is)) {
			got[change.Path] = change.Kind
		}
		require.Equal(t, want, got)
	})
}

// longExponent reports whether a quantity has an exponent of more than four digits. apimachinery
// writes out as many zeros, for which time and memory may not suffice.
func longExponent(text string) bool {
	at := strings.LastIndexAny(text, "eE")
	return at >= 0 && len(text)-at > len("e-999")
}
