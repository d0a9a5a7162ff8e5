package footprint

// Report says what the memory of a cache is spent on. Unless every object was measured, all numbers
// of bytes are estimates. In JSON the fields have the names of their tags. Fields may be added,
// none will be renamed. String makes a table.
type Report struct {
	// Name is the informer's, empty for a store or snapshot.
	Name string `json:"name,omitempty"`
	// ResourceVersion is the applied version of the measured snapshot.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Incomplete is true if the informer had not synced: only a part of its objects had arrived.
	Incomplete bool `json:"incomplete,omitempty"`
	// Objects is the number of objects, Sampled the number of those that were measured.
	Objects int `json:"objects"`
	Sampled int `json:"sampled"`
	// Bytes is the memory of all objects. The true value is within MarginBytes of it in 95 of 100
	// samples if objects share no memory. Memory that some of them share is estimated too high: a
	// sample seldom has all that share it. MarginBytes is 0 if every object was measured.
	Bytes       int64 `json:"bytes"`
	MarginBytes int64 `json:"marginBytes"`
	// TableBytes is the memory of the store's table and indexes, BacklogBytes that of the changes
	// that wait for handlers. Both are in addition to Bytes.
	TableBytes   int64 `json:"tableBytes"`
	BacklogBytes int64 `json:"backlogBytes"`
	// PerObject and Largest are of the measured objects. Largest are at most ten, largest first.
	PerObject Sizes    `json:"perObject"`
	Largest   []Object `json:"largest"`
	// Namespaces, Types and Fields are sorted by bytes, most first. An object without a namespace
	// has the name "". The type of an unstructured object includes its kind.
	Namespaces []Share `json:"namespaces"`
	Types      []Share `json:"types"`
	Fields     []Field `json:"fields"`
	// Hints say in words what can be done about the largest parts.
	Hints []string `json:"hints,omitempty"`
}

// Sizes are the sizes of single objects in bytes.
type Sizes struct {
	Mean int64 `json:"mean"`
	P50  int64 `json:"p50"`
	P99  int64 `json:"p99"`
	Max  int64 `json:"max"`
}

// Object is one object and its size.
type Object struct {
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
}

// Share is the part of a namespace or type.
type Share struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Field is the part of a field of the objects.
type Field struct {
	// Path has the names of the JSON form: metadata.name, spec.containers[*].env for a field of
	// every element, metadata.annotations["example.com/a"] for a key of a map. A key that consists
	// of letters, digits and underscores is written like a field: metadata.labels.app.
	Path string `json:"path"`
	// Bytes is the memory of the field with everything below it, OwnBytes without the fields below
	// it that the report has.
	Bytes    int64 `json:"bytes"`
	OwnBytes int64 `json:"ownBytes"`
	// EmptyBytes is the part of Bytes that stays if the field is empty but its parent is not: its
	// place in a Go struct.
	EmptyBytes int64 `json:"emptyBytes"`
}

// IsExact returns whether every object was measured.
func (r *Report) IsExact() bool { return r.Sampled == r.Objects }

// Field returns the field with a path, or false if the objects have no such field or if it is too
// small to be in the report.
func (r *Report) Field(path string) (Field, bool) {
	for _, field := range r.Fields {
		if field.Path == path {
			return field, true
		}
	}
	return Field{}, false
}

// share returns the part of the objects' memory that bytes are, from 0 to 1.
func (r *Report) share(bytes int64) float64 {
	if r.Bytes == 0 {
		return 0
	}
	return float64(bytes) / float64(r.Bytes)
}
