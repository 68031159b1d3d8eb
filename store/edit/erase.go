package edit

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/zarr"
)

// erasure describes the values of deleted records that the newest generation still has.
type erasure struct {
	columns []string // columns with values of deleted records
	records int64    // deleted records with a value in some column
	where   string   // the condition by which the records were deleted, which may quote their values
}

// erasureAfter returns which values of deleted records will be left once earlier generations are removed. If another
// generation is kept, its files have the values, too, so nothing is erased: rewriting the newest generation's columns
// would cost time and erase nothing.
func (d *Dataset) erasureAfter(opts PruneOptions) (e erasure, err error) {
	m, err := d.Manifest("")
	if err != nil || m.Deleted == nil {
		return e, err
	}
	p, err := d.pruneFiles(opts, true)
	if err != nil || len(p.Corrupt) > 0 {
		return e, err
	}
	numbers, err := d.lists.Generations()
	if err != nil || slices.ContainsFunc(numbers, func(n int) bool {
		return n != m.Generation && !slices.Contains(p.Generations, n)
	}) {
		return e, err
	}
	deleted, err := m.Deleted.Words(m.Records)
	if err != nil {
		return e, err
	}
	some := make([]uint64, len(deleted))
	for _, f := range m.Fields {
		lacks, err := m.Deleted.Lacks(f.Name, m.Records)
		if err != nil {
			return e, err
		}
		found := false
		for k, w := range deleted {
			if lacks != nil {
				w &^= lacks[k]
			}
			some[k], found = some[k]|w, found || w != 0
		}
		if found {
			e.columns = append(e.columns, f.Name)
		}
	}
	for _, w := range some {
		e.records += int64(bits.OnesCount64(w))
	}
	if m.Change != nil {
		e.where = m.Change.Where
	}
	return e, nil
}

// erase writes each column without the values of deleted records, and commits each as a generation of its own. A crash
// leaves the remaining columns for the next prune. The newest generation then has no Change.Where, the condition by
// which records were deleted, as it may contain values of these records: if no column needs writing, a generation is
// committed for that alone.
func (d *Dataset) erase(e erasure, by string) error {
	change := store.Change{Operation: "erase", Records: e.records, By: by}
	for _, name := range e.columns {
		if err := d.eraseColumn(name, change); err != nil {
			return fmt.Errorf("column %q, whose values of deleted records are to be erased: %w", name, err)
		}
	}
	if len(e.columns) > 0 || e.where == "" {
		return nil
	}
	_, err := write.Edit(d.home, change, func(*write.Editing) error { return nil })
	return err
}

// eraseColumn writes a column again, in which deleted records have zeros, or no rows.
func (d *Dataset) eraseColumn(name string, change store.Change) error {
	m, err := d.Manifest("")
	if err != nil {
		return err
	}
	i := m.Schema().Index(name)
	if i < 0 || m.Deleted == nil {
		return nil // another writer has changed the dataset in between
	}
	ds, end, err := d.Records(m.Generation, []string{name}, Live)
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	c, err := write.CreateColumn(d.home, m.Fields[i], write.ColumnOptions{Of: m.Generation, Arrays: zarr.Columns{}})
	if err != nil {
		return err
	}
	defer c.Close()
	value := valueAt(ds)
	for k := range int64(ds.Len()) {
		v, err := value(k)
		if err == nil {
			err = c.Append(v)
		}
		if err != nil {
			return err
		}
	}
	change.Columns = []string{name}
	_, err = c.Commit(write.Existing, change)
	return err
}
