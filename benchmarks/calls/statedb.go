package calls

import (
	"fmt"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
)

// stateKeys and stateNamespaces are the primary key and an index by namespace.
var (
	stateKeys = statedb.Index[*object, string]{
		Name:       "key",
		FromObject: func(o *object) index.KeySet { return index.NewKeySet(index.String(keyOf(o))) },
		FromKey:    index.String,
		Unique:     true,
	}
	stateNamespaces = statedb.Index[*object, string]{
		Name:       "namespace",
		FromObject: func(o *object) index.KeySet { return index.NewKeySet(index.String(o.Namespace)) },
		FromKey:    index.String,
	}
)

// stateDB is cilium/statedb, an in-memory database for many tables that are reconciled. It is made
// for transactions of many writes; Update is a transaction of one, as an event of an informer is.
type stateDB struct {
	db    *statedb.DB
	table statedb.RWTable[*object]
}

// makeStateDB makes an empty store with the first of the indexes.
func makeStateDB(storeOptions) (store, error) {
	db := statedb.New()
	header := func() []string { return []string{"key"} }
	row := func(o *object) []string { return []string{keyOf(o)} }
	table, err := statedb.NewTableAny(db, "objects", header, row, stateKeys, stateNamespaces)
	if err != nil {
		return nil, fmt.Errorf("statedb: %w", err)
	}
	return &stateDB{db: db, table: table}, nil
}

func (s *stateDB) Add(obj any) error { return s.Update(obj) }

func (s *stateDB) Update(obj any) error { return s.Replace([]any{obj}, "") }

// Replace inserts or updates objects in one transaction.
func (s *stateDB) Replace(list []any, _ string) error {
	txn := s.db.WriteTxn(s.table)
	defer txn.Abort()
	for _, obj := range list {
		if _, _, err := s.table.Insert(txn, obj.(*object)); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

func (s *stateDB) GetByKey(key string) (item any, exists bool, err error) {
	object, _, found := s.table.Get(s.db.ReadTxn(), stateKeys.Query(key))
	return object, found, nil
}
