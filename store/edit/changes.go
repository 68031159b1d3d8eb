package edit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Changes is how a generation of a dataset differs from an earlier one.
type Changes struct {
	Before, After int // the numbers of the generations

	// Columns are those of both, in the order of the later one. Columns that were dropped come last.
	Columns []Column

	Appended, Deleted, Restored int64 // records
}

// Column is a column of two generations.
type Column struct {
	Before, After string // its names; "" in a generation that does not have it
	Same          bool   // its values, if both have it
}

// Moved reports whether records have other numbers, or there are others.
func (c *Changes) Moved() bool { return c.Appended+c.Deleted+c.Restored > 0 }

// String says what changed, in one line.
func (c *Changes) String() string {
	var parts []string
	for _, of := range c.Columns {
		switch {
		case of.Before == "":
			parts = append(parts, "added "+of.After)
		case of.After == "":
			parts = append(parts, "dropped "+of.Before)
		default:
			if of.Before != of.After {
				parts = append(parts, "renamed "+of.Before+" to "+of.After)
			}
			if !of.Same {
				parts = append(parts, "set "+of.After)
			}
		}
	}
	for _, n := range []struct {
		verb    string
		records int64
	}{{"appended", c.Appended}, {"deleted", c.Deleted}, {"restored", c.Restored}} {
		if n.records > 0 {
			parts = append(parts, fmt.Sprintf("%s %d records", n.verb, n.records))
		}
	}
	if parts == nil {
		parts = []string{"the same columns and records"}
	}
	return fmt.Sprintf("generation %d to %d: %s", c.Before, c.After, strings.Join(parts, ", "))
}

// Refresh opens the newest generation of ds, a dataset in a folder or file of this machine, and returns what changed
// since that of ds. If ds has the newest one, it is returned, and changes is nil. Otherwise the caller closes both.
// Options are those that ds was opened with, except a generation.
func Refresh(ds *mmapds.Dataset, options ...mmapds.Option) (newest *mmapds.Dataset, changes *Changes, err error) {
	folders, _ := ds.Generations()
	if len(folders) != 1 {
		return nil, nil, errors.New("store: refresh: the dataset keeps no generations on this machine")
	}
	newest, changes, err = refresh(folders[0], ds, options)
	if err != nil {
		return nil, nil, fmt.Errorf("store: refresh %q: %w", folders[0], err)
	}
	return newest, changes, nil
}

func refresh(path string, ds *mmapds.Dataset, options []mmapds.Option) (*mmapds.Dataset, *Changes, error) {
	newest, err := mmapds.Open(path, options...)
	if err != nil {
		return nil, nil, err
	}
	before, after := ds.Manifest(), newest.Manifest()
	if after != nil && after.Generation == before.Generation && after.ID == before.ID {
		return ds, nil, newest.Close()
	}
	if after == nil || after.Generation <= before.Generation {
		err := errors.New("another dataset has taken its place, so it is not known what changed: open it")
		return nil, nil, errors.Join(err, newest.Close())
	}
	changes, err := Compare(path, before, after)
	if err != nil {
		return nil, nil, errors.Join(err, newest.Close())
	}
	return newest, changes, nil
}

// Compare returns how a generation of the dataset at path differs from an earlier one. Columns that were renamed are
// followed by the generations in between or, if some of these were pruned, by their values.
func Compare(path string, before, after *store.Manifest) (*Changes, error) {
	c := &Changes{Before: before.Generation, After: after.Generation}
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
