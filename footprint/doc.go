// Package footprint reports what the memory of a cache is spent on: by field, by namespace, by Go
// type and by object.
//
//	report, err := footprint.Measure(ctx, pods)
//	if err != nil {
//		return err
//	}
//	fmt.Println(report)
//
// Measure reads a sample of the objects of an informer, a store or a snapshot, and estimates the
// rest from it. Sample: footprint.Whole measures every object. Report.String is a table for people;
// as JSON a report can be kept, compared with a later one, and given to the command fieldsused,
// which says which of the fields a program reads. [docs/memory.md] shows how to use both.
//
// # What is counted
//
// A report counts the heap memory that is reachable from the objects, as Go's allocator rounds it:
// slices with their capacity, maps with their free places. Memory that several objects share, such
// as an interned text, is counted once, for the path and the object at which it was met first.
// Memory of the table, its indexes and the handlers' backlogs is reported beside the objects.
//
// Some things cannot be seen from outside, and are not counted: the rest of a text or array of
// which only a part is referenced, the places of a map that has had more entries than it has now,
// what a function or channel refers to, and objects that only a handler's backlog still has. Nor
// are values below 10,000 levels of references.
//
// What only some of the measured objects share is counted as if the others did not share it with
// them: unless every object is measured, the estimate of such memory is high.
//
// [docs/memory.md]: https://github.com/watchmirror/cache/blob/main/docs/memory.md
package footprint
