package nats

import (
	"fmt"
	"testing"
	"time"

	"github.com/watchmirror/cache/sources"
)

func put(key string, revision uint64, value string) message {
	return message{KeyValue: sources.KeyValue{Key: key, Revision: revision, Value: []byte(value)}}
}

func deletion(key string, revision uint64) message {
	return message{KeyValue: sources.KeyValue{Key: key, Revision: revision}, deletion: true}
}

// expect checks the change that a message makes, written as "DELETED 1", "DELETED unknown" or
// "redundant".
func expect(t *testing.T, keys *keyTable, m message, want string) {
	t.Helper()
	c, redundant := keys.change(m)
	got := string(c.Type) + " " + string(c.Value)
	switch {
	case redundant:
		got = "redundant"
	case c.LastUnknown:
		got = string(c.Type) + " unknown"
	}
	if got != want {
		t.Errorf("%s at %d: %s, want %s", m.Key, m.Revision, got, want)
	}
}

func list(keys *keyTable, revision uint64, messages ...message) {
	state := map[string]sources.KeyValue{}
	for _, m := range messages {
		state[m.Key] = m.KeyValue
	}
	keys.listed(revision, state, keys.epochNow())
}

func TestADeletionOfAKeyThatDidNotExistIsRedundant(t *testing.T) {
	keys := newKeyTable()
	expect(t, keys, deletion("a", 1), "DELETED unknown") // nothing is listed yet
	list(keys, 2, put("b", 2, "1"))
	expect(t, keys, deletion("a", 3), "redundant")
	expect(t, keys, deletion("b", 4), "DELETED 1")
	expect(t, keys, deletion("b", 5), "redundant")
	expect(t, keys, put("b", 6, "2"), "ADDED 2")
	expect(t, keys, put("b", 7, "3"), "MODIFIED 3")
}

func TestAWatchThatIsBehindReceivesWhatOthersHaveReceived(t *testing.T) {
	keys := newKeyTable()
	list(keys, 1, put("a", 1, "1"))
	messages := []message{put("a", 2, "2"), deletion("a", 3), put("a", 4, "4"), put("a", 5, "5")}
	want := []string{"MODIFIED 2", "DELETED 2", "ADDED 4", "MODIFIED 5"}
	for range 2 {
		for i, m := range messages {
			expect(t, keys, m, want[i])
		}
	}
	if state := keys.live["a"]; string(state.value) != "5" || state.created != 4 {
		t.Errorf("the table has %q of %d", state.value, state.created)
	}
}

func TestADeletionThatAListWasFirstToShowHasTheLastValue(t *testing.T) {
	keys := newKeyTable()
	list(keys, 2, put("a", 1, "1"), put("b", 2, "1"))
	list(keys, 4, put("b", 2, "1"))
	if at, known := keys.at(2); !known || !at["a"] || !at["b"] {
		t.Errorf("the keys at 2 are %v", at)
	}
	if at, known := keys.at(4); !known || at["a"] {
		t.Errorf("the keys at 4 are %v", at)
	}
	expect(t, keys, deletion("a", 3), "DELETED 1")
}

func TestDeletionsThatAreNotKeptAnyMoreAreNotLost(t *testing.T) {
	keys := newKeyTable()
	var first []message
	for i := range keptDeletions + 1 {
		first = append(first, put(fmt.Sprint("key-", i), uint64(i+1), "1"))
	}
	last := uint64(len(first))
	list(keys, last, first...)
	for i := range first {
		expect(t, keys, deletion(fmt.Sprint("key-", i), last+1+uint64(i)), "DELETED 1")
	}
	expect(t, keys, deletion("key-0", last+1), "DELETED unknown") // in another watch
	expect(t, keys, deletion("key-1", last+2), "DELETED 1")
	if _, known := keys.at(last); known {
		t.Error("the keys before a forgotten deletion are known")
	}
	if at, known := keys.at(last + 1); !known || len(at) != keptDeletions {
		t.Errorf("%d keys are known after it", len(at))
	}
}

func TestNothingIsKnownOfABucketThatIsAnother(t *testing.T) {
	created := time.Now()
	for name, test := range map[string]struct {
		created        time.Time
		newest, before uint64
		another        bool
	}{
		"further":               {created, 12, 10, false},
		"an answer that waited": {created, 9, 8, false},
		"an older copy":         {created, 9, 10, true},
		"created again":         {created.Add(1), 12, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			keys := newKeyTable()
			epoch := keys.sawBucket(created, 10, 0)
			list(keys, 10, put("a", 10, "1"))
			another := keys.sawBucket(test.created, test.newest, test.before) != epoch
			if another != test.another {
				t.Errorf("another: %t", another)
			}
			_, known := keys.at(10)
			if known == test.another || (len(keys.live) == 0) != test.another {
				t.Errorf("known: %t, %d keys", known, len(keys.live))
			}
			if keys.isShown(10) == test.another || !keys.isShown(11) {
				t.Errorf("10 is shown: %t", keys.isShown(10))
			}
			isPresent := keys.read(messageID{key: "a", revision: 10}, epoch)
			if isPresent == test.another {
				t.Errorf("a message of the first bucket is read: %t", isPresent)
			}
			isPresent = keys.show(9, epoch)
			if isPresent == test.another || keys.isShown(9) == test.another {
				t.Errorf("a revision of the first bucket is shown: %t", isPresent)
			}
			isPresent = keys.listed(10, nil, epoch)
			if isPresent == test.another || keys.isShown(10) == test.another {
				t.Errorf("a list of the first bucket is recorded: %t", isPresent)
			}
		})
	}
}

// Readers of the present bucket resume at what they have got from it, others list.
func TestARevisionOfAnEarlierBucketIsNotShown(t *testing.T) {
	keys := newKeyTable()
	keys.sawBucket(time.Now(), 10_000, 0)
	keys.forget()
	list(keys, 4)
	keys.show(5, keys.epochNow())
	for revision, want := range map[uint64]bool{
		3: false, 4: true, 5: true, 6: false, 10_001: true,
	} {
		if keys.isShown(revision) != want {
			t.Errorf("%d is shown: %t", revision, !want)
		}
	}
	for revision := range uint64(10 * keptShown) {
		keys.show(revision, keys.epochNow())
	}
	if len(keys.shown) > keptShown {
		t.Errorf("%d revisions are kept", len(keys.shown))
	}
}

func TestTheLastMessagesAreOfDifferentKeys(t *testing.T) {
	keys := newKeyTable()
	for revision := range uint64(100) {
		keys.read(messageID{key: fmt.Sprint("key-", revision%10/5), revision: revision}, 0)
	}
	keys.read(messageID{key: "behind", revision: 7}, 0)
	messages := keys.messagesUpTo(100)
	if len(messages) != 2 || messages[0].revision != 99 || messages[1].revision != 94 {
		t.Errorf("the last messages are %v", messages)
	}
	for revision := range uint64(100) {
		keys.read(messageID{key: fmt.Sprint("key-", revision), revision: 100 + revision}, 0)
	}
	messages = keys.messagesUpTo(198)
	if len(messages) != keptMessages-1 || messages[0].revision != 198 {
		t.Errorf("the last messages are %v", messages)
	}
}

// A value, or a deletion, that expires before an older value of its key leaves that value.
func TestAListedValueThatIsOlderThanAKnownChangeReplacesIt(t *testing.T) {
	keys := newKeyTable()
	list(keys, 2, put("a", 1, "1"), put("b", 2, "1"))
	expect(t, keys, put("a", 3, "2"), "MODIFIED 2")
	expect(t, keys, deletion("b", 4), "DELETED 1")
	list(keys, 5, put("a", 1, "1"), put("b", 2, "1"))
	expect(t, keys, deletion("a", 6), "DELETED 1")
	expect(t, keys, deletion("b", 7), "DELETED 1")
	list(keys, 5, put("a", 1, "1")) // of a request that took longer
	if at, known := keys.at(7); !known || len(at) != 0 {
		t.Errorf("the keys at 7 are %v", at)
	}
}
