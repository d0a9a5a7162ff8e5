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

// Add implements Store.
func (s *StateDB) Add(obj any) error { return s.Update(obj) }

// Update implements Store.
func (s *StateDB) Update(obj any) error { return s.Replace([]any{obj}, "") }

// Replace implements Store.
func (s *StateDB) Replace(list []any, _ string) error {
	txn := s.db.WriteTxn(s.table)
	defer txn.Abort()
	for _, obj := range list {
		if _, _, err := s.table.Insert(txn, obj.(*Object)); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

// GetByKey implements Store.
func (s *StateDB) GetByKey(key string) (item any, exists bool, err error) {
	object, _, found := s.table.Get(s.db.ReadTxn(), stateKeys.Query(key))
	return object, found, nil
}

// CountNamespace implements Store.
func (s *StateDB) CountNamespace(namespace string) int {
	count := 0
	for object := range s.table.List(s.db.ReadTxn(), stateNamespaces.Query(namespace)) {
		if object != nil {
			count++
		}
	}
	return count
}

// InSnapshot implements Store. Every read of statedb is of a snapshot.
func (s *StateDB) InSnapshot(key string) bool {
	_, exists, _ := s.GetByKey(key)
	return exists
}
