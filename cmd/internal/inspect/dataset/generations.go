package dataset

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/bits"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Changes is the difference between two generations of a dataset.
type Changes struct {
	// Columns are the columns of both, in the order of the later one. Columns that were dropped come last.
	Columns []Column

	Appended, Deleted, Restored int64 // records
}

// Column is a column of two generations.
type Column struct {
	Before, After string // its names; "" in a generation that does not have it
	Same          bool   // whether both have it with the same values
}

// Compare returns the difference between a generation of the dataset at path and an earlier one. Columns that were
// renamed are followed by the generations in between or, if some of these were pruned, by their values.
func Compare(path string, before, after *store.Manifest) (*Changes, error) {
	c := new(Changes)
	names, err := Renamed(path, before.Generation, after.Generation)
	if err == nil {
		err = c.compareRecords(before, after)
	}
	if err == nil {
		err = c.compareColumns(before, after, names)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Renamed returns the names that columns of a generation of the dataset at path have in another one, by their names
// before. Columns that only one of them has are not in it. It is nil if generations that it follows were pruned or are
// corrupt.
func Renamed(path string, from, to int) (map[string]string, error) {
	if from > to {
		names, err := Renamed(path, to, from)
		return inverse(names), err
	}
	first, _, err := store.ReadGeneration(path, from)
	if unknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	same := make(map[string]string)
	for _, f := range first.Fields {
		same[f.Name] = f.Name
	}
	names := []map[string]string{same} // in the generations from the first one on
	for n := from + 1; n <= to; n++ {
		m, _, err := store.ReadGeneration(path, n)
		if unknown(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		next, err := follow(path, names, from, m)
		if err != nil || next == nil {
			return nil, err
		}
		names = append(names, next)
	}
	return names[to-from], nil
}

// unknown reports whether a generation is not kept, or cannot be read.
func unknown(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrCorrupt)
}

// follow returns the names of columns in the next generation from those in the ones before; nil if they are not known.
func follow(path string, names []map[string]string, from int, m *store.Manifest) (map[string]string, error) {
	next, change := names[len(names)-1], m.Change
	switch {
	case change == nil:
	case change.Operation == "restore" && change.From >= from:
		next = names[change.From-from]
	case change.Operation == "restore":
		earlier, err := Renamed(path, change.From, from)
		if err != nil || earlier == nil {
			return nil, err
		}
		next = inverse(earlier)
	case change.Operation == "rename column" && len(change.Columns) == 2:
		next = maps.Clone(next)
		for name, now := range next {
			if now == change.Columns[0] {
				next[name] = change.Columns[1]
			}
		}
	case change.Operation == "drop column":
		next = maps.Clone(next)
		maps.DeleteFunc(next, func(_, now string) bool { return slices.Contains(change.Columns, now) })
	}
	return next, nil
}

func inverse(names map[string]string) map[string]string {
	if names == nil {
		return nil
	}
	out := make(map[string]string)
	for name, to := range names {
		out[to] = name
	}
	return out
}

// compareRecords compares the records of two generations by their places in the files, which stay.
func (c *Changes) compareRecords(old, m *store.Manifest) error {
	was, err := old.Deleted.Words(old.Records)
	if err != nil {
		return err
	}
	now, err := m.Deleted.Words(m.Records)
	if err != nil {
		return err
	}
	both := write.Shared(old, m)
	live := int64(0) // of both in the earlier one
	for k := range (both + 63) / 64 {
		mask := ^uint64(0)
		if left := both - 64*k; left < 64 {
			mask = 1<<left - 1
		}
		c.Deleted += int64(bits.OnesCount64(now[k] &^ was[k] & mask))
		c.Restored += int64(bits.OnesCount64(was[k] &^ now[k] & mask))
		live += int64(bits.OnesCount64(^was[k] & mask))
	}
	c.Appended = m.Live() - (live - c.Deleted + c.Restored)
	c.Deleted += old.Live() - live // a restored generation may lack records, and have others in their places
	return nil
}

// columnState is a column in a generation.
type columnState struct {
	store.Field
	state []byte // that of its values: others have another one
	file  string // of its first records; "" if it has none of its own
}

// columnStates returns the columns of a generation.
func columnStates(m *store.Manifest) (list []columnState, err error) {
	states, err := layout.ColumnStates(m.BuilderState, m.Schema().Specs())
	if err != nil {
		return nil, err
	}
	for i, f := range m.Fields {
		v := columnState{Field: f, state: states[i]}
		if len(m.Shards) > 0 {
			k := slices.IndexFunc(m.Shards[0].Files, func(file store.File) bool { return file.Field == f.Name })
			v.file = m.Shards[0].Files[k].Name
		}
		list = append(list, v)
	}
	return list, nil
}

// compareColumns pairs the columns of both generations by names, if these are known.
func (c *Changes) compareColumns(old, m *store.Manifest, names map[string]string) error {
	before, err := columnStates(old)
	if err != nil {
		return err
	}
	after, err := columnStates(m)
	if err != nil {
		return err
	}
	same := func(a, b columnState) bool { // an append changes the state, and leaves files as they are
		if old.Records == m.Records && write.Shared(old, m) == m.Records {
			return a.DType == b.DType && bytes.Equal(a.state, b.state)
		}
		return a.file == b.file
	}
	origins := origins(before, after, names, same)
	for _, v := range after {
		i := slices.IndexFunc(before, func(b columnState) bool { return b.Name == origins[v.Name] })
		if i < 0 {
			c.Columns = append(c.Columns, Column{After: v.Name})
			continue
		}
		c.Columns = append(c.Columns, Column{before[i].Name, v.Name, same(before[i], v)})
		before = slices.Delete(before, i, i+1)
	}
	for _, v := range before {
		c.Columns = append(c.Columns, Column{Before: v.Name})
	}
	return nil
}

// origins returns the names before of columns that both generations have. One that was dropped and added counts as the
// same one. If names are not known, one of another name and the same values was renamed.
func origins(before, after []columnState, names map[string]string, same func(a, b columnState) bool) map[string]string {
	out := inverse(names)
	if out == nil {
		out = make(map[string]string)
	}
	taken := func(name string) bool { return slices.Contains(slices.Collect(maps.Values(out)), name) }
	find := func(v columnState, is func(b columnState) bool) {
		i := slices.IndexFunc(before, func(b columnState) bool { return !taken(b.Name) && is(b) })
		if out[v.Name] == "" && i >= 0 {
			out[v.Name] = before[i].Name
		}
	}
	for _, v := range after {
		find(v, func(b columnState) bool { return b.Name == v.Name })
	}
	for _, v := range after {
		if names == nil {
			find(v, func(b columnState) bool { return b.Ragged == v.Ragged && slices.Equal(b.Shape, v.Shape) && same(b, v) })
		}
	}
	return out
}
