package peers

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-memdb"
)

const (
	memTable     = "objects"
	memKey       = "id"
	memNamespace = "namespace"
)

var errArgument = errors.New("not a string")

// textIndex indexes objects by a text.
type textIndex struct{ of func(o *Object) string }

// FromObject implements memdb.SingleIndexer.
func (i textIndex) FromObject(raw any) (bool, []byte, error) {
	return true, []byte(i.of(raw.(*Object)) + "\x00"), nil
}

// FromArgs implements memdb.Indexer.
func (textIndex) FromArgs(args ...any) ([]byte, error) {
	text, ok := args[0].(string)
	if !ok {
		return nil, errArgument
	}
	return []byte(text + "\x00"), nil
}

// MemDB is hashicorp/go-memdb.
type MemDB struct{ db *memdb.MemDB }

// NewMemDB makes an empty store.
func NewMemDB() (Store, error) {
	db, err := memdb.NewMemDB(&memdb.DBSchema{Tables: map[string]*memdb.TableSchema{memTable: {
		Name: memTable,
		Indexes: map[string]*memdb.IndexSchema{
			memKey: {Name: memKey, Unique: true, Indexer: textIndex{of: keyOf}},
			memNamespace: {
				Name:    memNamespace,
				Indexer: textIndex{of: func(o *Object) string { return o.Namespace }},
			},
		},
	}}})
	if err != nil {
		return nil, fmt.Errorf("go-memdb: %w", err)
	}
	return &MemDB{db: db}, nil
}

// Add implements Store.
func (m *MemDB) Add(obj any) error { return m.Update(obj) }

// Update implements Store.
func (m *MemDB) Update(obj any) error { return m.Replace([]any{obj}, "") }

// Replace implements Store.
func (m *MemDB) Replace(list []any, _ string) error {
	txn := m.db.Txn(true)
	defer txn.Abort()
	for _, object := range list {
		if err := txn.Insert(memTable, object); err != nil {
			return err
		}
	}
	txn.Commit()
	return nil
}

// GetByKey implements Store.
func (m *MemDB) GetByKey(key string) (item any, exists bool, err error) {
	found, err := m.db.Txn(false).First(memTable, memKey, key)
	return found, found != nil, err
}

// CountNamespace implements Store.
func (m *MemDB) CountNamespace(namespace string) int {
	found, err := m.db.Txn(false).Get(memTable, memNamespace, namespace)
	if err != nil {
		return 0
	}
	count := 0
	for object := found.Next(); object != nil; object = found.Next() {
		count++
	}
	return count
}

// InSnapshot implements Store.
func (m *MemDB) InSnapshot(key string) bool {
	found, err := m.db.Snapshot().Txn(false).First(memTable, memKey, key)
	return err == nil && found != nil
}
