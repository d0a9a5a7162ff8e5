package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// Checks of lists in parts, for stores with BeginReplace.

// replacement is a Replacement of any package. Its types differ between packages, so its methods are called by
// reflection.
type replacement struct {
	trial        *storeTrial
	part         reflect.Value
	commit, stop reflect.Value
}

// lacksReplacement checks the signatures: BeginReplace has a struct parameter with Staged, and returns a value with Add
// (a struct of Items, Retain and Deleted), Commit and Abort.
func lacksReplacement(t *storeTrial) string {
	begin := t.method("BeginReplace")
	if !begin.IsValid() {
		return "the store has no BeginReplace: a reflector gives it whole lists"
	}
	const missing = "the store has a BeginReplace of another kind"
	if begin.Type().NumIn() != 1 || begin.Type().NumOut() != 1 || !hasFields(begin.Type().In(0), reflect.TypeFor[bool](), "Staged") {
		return missing
	}
	of := begin.Type().Out(0)
	skip := 0
	if of.Kind() != reflect.Interface {
		skip = 1 // the receiver
	}
	part, ok := of.MethodByName("Add")
	if !ok || part.Type.NumIn() != 2+skip || part.Type.NumOut() != 2 || part.Type.Out(0).Kind() != reflect.Slice ||
		!hasFields(part.Type.In(1+skip), reflect.TypeFor[[]any](), "Items", "Retain", "Deleted") {
		return missing
	}
	commit, ok := of.MethodByName("Commit")
	abort, also := of.MethodByName("Abort")
	if !ok || !also || commit.Type.NumIn() != 2+skip || commit.Type.NumOut() != 1 || abort.Type.NumIn() != skip {
		return missing
	}
	return ""
}

func hasFields(of, fieldType reflect.Type, names ...string) bool {
	if of.Kind() != reflect.Struct {
		return false
	}
	for _, name := range names {
		if field, ok := of.FieldByName(name); !ok || field.Type != fieldType {
			return false
		}
	}
	return true
}

func (t *storeTrial) begin(staged bool) *replacement {
	begin := t.method("BeginReplace")
	options := reflect.New(begin.Type().In(0)).Elem()
	options.FieldByName("Staged").SetBool(staged)
	r := begin.Call([]reflect.Value{options})[0]
	return &replacement{
		trial: t, part: r.MethodByName("Add"), commit: r.MethodByName("Commit"), stop: r.MethodByName("Abort"),
	}
}

// pieces is a part of a list.
type pieces struct{ items, keep, deleted []any }

// give adds a part, and returns the number of rejected objects.
func (r *replacement) give(p pieces) (rejected int, err error) {
	part := reflect.New(r.part.Type().In(1)).Elem()
	part.FieldByName("Items").Set(reflect.ValueOf(p.items))
	part.FieldByName("Retain").Set(reflect.ValueOf(p.keep))
	part.FieldByName("Deleted").Set(reflect.ValueOf(p.deleted))
	err = r.trial.inTime("Add", func() error {
		out := r.part.Call([]reflect.Value{reflect.ValueOf(r.trial.ctx), part})
		rejected = out[0].Len()
		return asError(out[1])
	})
	return rejected, err
}

func asError(value reflect.Value) error {
	err, _ := value.Interface().(error)
	return err
}

// gives is give for objects that must all be accepted.
func (r *replacement) gives(texts ...string) error {
	rejected, err := r.give(pieces{items: r.trial.objects(texts...)})
	if err == nil && rejected > 0 {
		err = fmt.Errorf("it rejected %d", rejected)
	}
	if err != nil {
		return fmt.Errorf("a part with %q: %w", texts, err)
	}
	return nil
}

func (r *replacement) commits(version string) error {
	err := r.trial.inTime("Commit", func() error {
		ctx := reflect.ValueOf(context.Context(r.trial.ctx))
		return asError(r.commit.Call([]reflect.Value{ctx, reflect.ValueOf(version)})[0])
	})
	if err != nil {
		return fmt.Errorf("the commit: %w", err)
	}
	return nil
}

func (r *replacement) abort() { r.stop.Call(nil) }

// isAtIfKnown is isAt for a store that has a version.
func (t *storeTrial) isAtIfKnown(version, after string) error {
	if lacksVersion(t) != "" {
		return nil
	}
	return t.isAt(version, after)
}

// commitList replaces the content by a list in two parts.
func (t *storeTrial) commitList(version string, one, other []string) error {
	r := t.begin(false)
	for _, texts := range [][]string{one, other} {
		if err := r.gives(texts...); err != nil {
			return err
		}
	}
	return r.commits(version)
}

func checkCommit(t *storeTrial) error {
	if err := t.write("add x=1"); err != nil {
		return err
	}
	if err := t.commitList("7", []string{"a=1", "b=1"}, []string{"c=1"}); err != nil {
		return err
	}
	if err := t.after("the commit of a first list, with an object there that it lacks", "a=1", "b=1", "c=1"); err != nil {
		return err
	}
	if err := t.isAtIfKnown("7", "a commit at 7"); err != nil {
		return err
	}
	if err := t.commitList("8", []string{"b=2"}, []string{"d=1"}); err != nil {
		return err
	}
	if err := t.after("the commit of a relist", "b=2", "d=1"); err != nil {
		return err
	}
	if err := t.isAtIfKnown("8", "a commit at 8"); err != nil {
		return err
	}
	if err := t.begin(false).commits("9"); err != nil {
		return err
	}
	return t.after("the commit of an empty list")
}

// checkFirstList also begins a staged replacement, which must not be visible.
func checkFirstList(t *storeTrial) error {
	staged := t.begin(true)
	if err := staged.gives("z=1"); err != nil {
		return err
	}
	if err := t.after("a part of a staged list"); err != nil {
		return err
	}
	staged.abort()
	r := t.begin(false)
	if err := r.gives("a=1", "b=1"); err != nil {
		return err
	}
	shown := []string{"a=1", "b=1"}
	if t.config.Content != nil {
		shown = nil // a queue may hand out a first list at its commit
	}
	if err := t.after("the first part of a first list", shown...); err != nil {
		return err
	}
	if err := t.isAtIfKnown("", "the first part of a first list"); err != nil {
		return err
	}
	// The list is aborted: the objects of its parts stay until the next list is complete.
	r.abort()
	if err := t.after("a first list that broke off", shown...); err != nil {
		return err
	}
	if err := t.commitList("7", []string{"b=1"}, []string{"c=1"}); err != nil {
		return err
	}
	return t.after("the list after one that broke off", "b=1", "c=1")
}

func checkRelist(t *storeTrial) error {
	if err := t.commitList("7", []string{"a=1"}, []string{"b=1"}); err != nil {
		return err
	}
	if err := t.holds("a=1", "b=1"); err != nil {
		return err
	}
	r := t.begin(false)
	for _, text := range []string{"b=2", "c=1"} {
		if err := r.gives(text); err != nil {
			return err
		}
		if err := t.after("a part of a relist, before its commit", "a=1", "b=1"); err != nil {
			return err
		}
	}
	if err := t.isAtIfKnown("7", "parts of a relist"); err != nil {
		return err
	}
	if err := r.commits("8"); err != nil {
		return err
	}
	return t.after("the commit of a relist", "b=2", "c=1")
}

func checkAbort(t *storeTrial) error {
	if err := t.commitList("7", []string{"a=1"}, []string{"b=1"}); err != nil {
		return err
	}
	if err := t.holds("a=1", "b=1"); err != nil {
		return err
	}
	r := t.begin(false)
	if err := r.gives("b=2", "c=1"); err != nil {
		return err
	}
	r.abort()
	if err := t.after("a relist that was aborted", "a=1", "b=1"); err != nil {
		return err
	}
	if err := t.isAtIfKnown("7", "a relist that was aborted"); err != nil {
		return err
	}
	r = t.begin(false)
	if err := r.gives("b=3"); err != nil {
		return err
	}
	if err := r.commits("8"); err != nil {
		return err
	}
	r.abort() // as a reflector's defer does
	return t.after("an Abort after the commit", "b=3")
}

func checkKeepAndDeleted(t *storeTrial) error {
	if err := t.commitList("7", []string{"a=1"}, []string{"b=1", "c=1"}); err != nil {
		return err
	}
	if err := t.holds("a=1", "b=1", "c=1"); err != nil {
		return err
	}
	r := t.begin(false)
	if err := r.gives("b=2", "d=1", "e=1"); err != nil {
		return err
	}
	for _, p := range []pieces{
		{keep: t.objects("a=unreadable")},
		{items: t.objects("f=1"), deleted: t.objects("d=1")},
	} {
		if rejected, err := r.give(p); err != nil || rejected > 0 {
			return fmt.Errorf("a part with Retain or Deleted: %d rejected, %w", rejected, orNone(err))
		}
	}
	if err := r.commits("8"); err != nil {
		return err
	}
	return t.after("a relist that keeps a, takes back d and lacks c", "a=1", "b=2", "e=1", "f=1")
}

func checkRejected(t *storeTrial) error {
	if err := t.commitList("7", []string{"a=1"}, nil); err != nil {
		return err
	}
	r := t.begin(false)
	rejected, err := r.give(pieces{items: append(t.objects("b=1"), t.config.Unkeyable(), t.object("c=1"))})
	switch {
	case err != nil:
		return fmt.Errorf("a part with an object without a key: %w", err)
	case rejected != 1:
		return errors.New("a part did not reject an object without a key: a reflector could not report it")
	}
	if err := r.commits("8"); err != nil {
		return err
	}
	return t.after("a part with an object without a key", "b=1", "c=1")
}
