package footprint

import "fmt"

const (
	managedFieldsPath = "metadata.managedFields"
	lastAppliedPath   = `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`
)

const (
	// hintShare is the part from which on something is worth a hint.
	hintShare = 0.05
	// contentShare is the part that the fields beside metadata usually have.
	contentShare = 0.5
	// fewObjects is a number of objects of which each is a large part.
	fewObjects = 100
)

func (r *Report) hints() []string {
	var hints []string
	hint := func(bytes int64, what, advice string) {
		if share := r.share(bytes); share >= hintShare {
			hints = append(hints, fmt.Sprintf("%s: %.0f %%: %s", what, 100*share, advice))
		}
	}
	managed, _ := r.Field(managedFieldsPath)
	hint(managed.Bytes, "managedFields",
		"kubeapi drops them unless Options.KeepManagedFields is set; else drop them in a transform")
	applied, _ := r.Field(lastAppliedPath)
	hint(applied.Bytes, "kubectl's last-applied-configuration", "drop it in a transform")
	metadata, _ := r.Field("metadata")
	if rest := r.Bytes - metadata.Bytes; r.share(rest) >= contentShare {
		hint(rest, "fields beside metadata", "the command fieldsused says which of them the program "+
			"reads, and kubeapi.Options.Fields keeps only those")
	}
	if len(r.Largest) > 0 && r.Objects > fewObjects {
		hint(r.Largest[0].Bytes, "the object "+r.Largest[0].Key, "does the program need it?")
	}
	hint(r.BacklogBytes, "backlogs of handlers, beside the objects",
		"a handler is behind, see Status().Handlers")
	return hints
}
