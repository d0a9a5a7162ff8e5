package calls

import (
	"fmt"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"
)

// peerLines are of cilium/statedb, whose figures are those of the other side.
func peerLines() []Line {
	oneIndex := storeOptions{indexes: indexFunctions[:1]}
	line := func(what, unit string, measure func(s Scale) (Result, error)) Line {
		name := "P " + what + ", other: statedb"
		return Line{Name: name, Unit: unit, Goal: 1, FullOnly: true, measure: measure}
	}
	return []Line{
		line("insert all at once, 1 index", nsPerObject, inserts),
		line("update, 1 index", nsPerCall, func(s Scale) (Result, error) {
			return updates(s, makeStateDB, 1)
		}),
		line("get", nsPerCall, func(s Scale) (Result, error) {
			return gets(s, makeStateDB, s.Objects)
		}),
		line("memory, 1 index", bytesPerObject, func(s Scale) (Result, error) {
			return memory(s, makeStateDB, nameLength, oneIndex)
		}),
	}
}

// inserts fills empty stores.
func inserts(s Scale) (Result, error) {
	list := asList(newObjects(s.Objects, nameLength, 0))
	roundOf := func(make makeStore) round {
		var in store
		return round{
			prepare: func() error {
				in = make(storeOptions{indexes: indexFunctions[:1]})
				return nil
			},
			work: func() error { return in.Replace(list, "1") },
		}
	}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return t.measure(roundOf(makeStateDB), roundOf(makeOurs))
}

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

// makeStateDB makes an empty store with an index by namespace.
func makeStateDB(storeOptions) store {
	db := statedb.New()
	header := func() []string { return []string{"key"} }
	row := func(o *object) []string { return []string{keyOf(o)} }
	table, err := statedb.NewTableAny(db, "objects", header, row, stateKeys, stateNamespaces)
	if err != nil {
		panic(fmt.Sprintf("statedb refuses a table that is the same in every run: %v", err))
	}
	return &stateDB{db: db, table: table}
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
