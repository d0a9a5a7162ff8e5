package peers

import (
	"fmt"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
)

var stateKeys = statedb.Index[*Object, string]{
	Name:       "key",
	FromObject: func(o *Object) index.KeySet { return index.NewKeySet(index.String(keyOf(o))) },
	FromKey:    index.String,
	Unique:     true,
}

var stateNamespaces = statedb.Index[*Object, string]{
	Name:       "namespace",
	FromObject: func(o *Object) index.KeySet { return index.NewKeySet(index.String(o.Namespace)) },
	FromKey:    index.String,
}

// StateDB is cilium/statedb.
type StateDB struct {
	db    *statedb.DB
	table statedb.RWTable[*Object]
}

// NewStateDB makes an empty store.
func NewStateDB() (Store, error) {
	db := statedb.New()
	header := func() []string { return []string{"key"} }
	row := func(o *Object) []string { return []string{keyOf(o)} }
	table, err := statedb.NewTableAny(db, "objects", header, row, stateKeys, stateNamespaces)
	if err != nil {
		return nil, fmt.Errorf("statedb: %w", err)
	}
	return &StateDB{db: db, table: table}, nil
}

// Put implements Store.
func (s *StateDB) Put(object *Object) error { return s.PutAll([]*Object{object}) }

// PutAll implements Store.
func (s *StateDB) PutAll(objects []*Object) error {
	txn := s.db.WriteTxn(s.table)
	defer txn.Abort()
	for _, object := range objects {
		if _, _, err := s.table.Insert(txn, object); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

// Get implements Store.
func (s *StateDB) Get(key string) bool {
	_, _, found := s.table.Get(s.db.ReadTxn(), stateKeys.Query(key))
	return found
}

// ByNamespace implements Store.
func (s *StateDB) ByNamespace(namespace string) int {
	count := 0
	for object := range s.table.List(s.db.ReadTxn(), stateNamespaces.Query(namespace)) {
		if object != nil {
			count++
		}
	}
	return count
}

// InSnapshot implements Store. Every read of statedb is of a snapshot.
func (s *StateDB) InSnapshot(key string) bool { return s.Get(key) }
