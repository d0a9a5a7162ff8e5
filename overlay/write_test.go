package overlay

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// Cases of what a write shows, by the store's state when it was observed and the store's state now.
func TestAWriteIsShownUntilTheStoreHasItOrWhatCameAfterIt(t *testing.T) {
	at := func(uid, version, applied string) storeState {
		return storeState{state{true, types.UID(uid), version}, applied}
	}
	none := func(applied string) storeState { return storeState{applied: applied} }
	for _, test := range []struct {
		name        string
		uid         string
		version     string
		before, now storeState
		isNewer     bool
	}{
		{"the store has an older state", "u", "7", at("u", "5", "6"), at("u", "5", "6"), true},
		{"the store has that state", "u", "7", at("u", "5", "6"), at("u", "7", "7"), false},
		{"the store has a newer state", "u", "7", at("u", "5", "6"), at("u", "8", "9"), false},
		{"a newer state is quarantined", "u", "7", at("u", "5", "6"), at("u", "5", "9"), true},
		{
			"the object has left the selector before the write", "u", "7", at("u", "5", "6"),
			none("6"), true,
		},
		{"the store has lost the object", "u", "7", at("u", "5", "6"), none("8"), false},
		{"the store has lost it, without any version", "u", "x", at("u", "y", ""), none(""), false},
		{"the store has not got it yet", "u", "7", none("6"), none("6"), true},
		{"the store is past it and does not have it", "u", "7", none("6"), none("7"), false},
		{"the first list is not over", "u", "7", none(""), none(""), true},
		{
			"the store has the object before it", "w", "7", at("u", "5", "6"), at("u", "5", "6"),
			true,
		},
		{"the store has lost the object before it", "w", "7", at("u", "5", "6"), none("6"), true},
		{
			"the store has an older one that was not there before", "w", "7", none("4"),
			at("u", "5", "6"), true,
		},
		{
			"the store has the object after it", "u", "7", at("u", "5", "6"), at("w", "8", "8"),
			false,
		},
		{"the source went back", "u", "7", none("6"), none("3"), false},
		{"a transform removes versions", "u", "7", at("u", "", "6"), at("u", "", "6"), true},
		{
			"a transform removes versions, and the store is past it", "u", "7", at("u", "", "6"),
			at("u", "", "7"), false,
		},
		{"a transform removes UIDs", "u", "7", at("", "5", "6"), at("", "7", "7"), false},
		{
			"opaque: the store has another state", "u", "x", at("u", "a", "a"), at("u", "b", "b"),
			true,
		},
		{"opaque: the store has that state", "u", "x", at("u", "a", "a"), at("u", "x", "x"), false},
		{
			"opaque: the store has the object before it", "w", "x", at("u", "a", "a"),
			at("u", "b", "b"), true,
		},
		{
			"opaque: the store has a third object", "w", "x", at("u", "a", "a"), at("z", "b", "b"),
			false,
		},
		{
			"opaque: the store has another object, and had none", "w", "x", none("a"),
			at("z", "b", "b"), false,
		},
		{
			"opaque, without UIDs: the store has lost the object before it", "", "x",
			at("", "a", "a"), none("b"), true,
		},
	} {
		w := write{object: "any", state: state{true, types.UID(test.uid), test.version}}
		w.recordEarlier(test.before, nil)
		assert.Equal(t, test.isNewer, w.isNewer(test.now), test.name)
	}
	for _, test := range []struct {
		name        string
		uid         string
		version     string
		before, now storeState
		isNewer     bool
	}{
		{"the store has the object", "u", "5", at("u", "5", "6"), at("u", "5", "6"), true},
		{"the store has a newer state of it", "u", "5", at("u", "5", "6"), at("u", "7", "7"), true},
		{"the store has lost it", "u", "5", at("u", "5", "6"), none("8"), false},
		{
			"the object has left the selector before the write", "u", "7", at("u", "5", "5"),
			none("6"), true,
		},
		{"the store has another one", "u", "5", at("u", "5", "6"), at("w", "8", "8"), false},
		{"without UIDs: the store has it", "", "5", at("", "5", "6"), at("", "5", "6"), true},
		{"without UIDs: the store has an older state", "", "5", at("", "4", "4"), at("", "4", "4"), true},
		{
			"without UIDs: the store has a later state, perhaps of another one", "", "5",
			at("", "5", "6"), at("", "8", "8"), false,
		},
		{
			"opaque, without UIDs: the store has another state", "", "a", at("", "a", "a"),
			at("", "b", "b"), true,
		},
		{"the store has not got it yet", "u", "7", none("6"), none("6"), true},
		{"the store is past it", "u", "7", none("6"), none("7"), false},
		{
			"the store has the object before it", "w", "7", at("u", "5", "6"), at("u", "5", "6"),
			true,
		},
		{"the store has lost the object before it", "w", "7", at("u", "5", "6"), none("6"), true},
		{"opaque: the store has lost it", "u", "a", at("u", "a", "a"), none("b"), false},
		{
			"opaque: the store has another one", "u", "a", at("u", "a", "a"), at("w", "b", "b"),
			false,
		},
		{
			"opaque: the store has the object before it", "w", "x", at("u", "a", "a"),
			at("u", "b", "b"), true,
		},
		{
			"opaque, without UIDs: the store has lost it", "", "a", at("", "a", "a"), none("b"),
			false,
		},
	} {
		w := write{deleted: true, state: state{true, types.UID(test.uid), test.version}}
		w.recordEarlier(test.before, nil)
		assert.Equal(t, test.isNewer, w.isNewer(test.now), "deletion: "+test.name)
	}
}
