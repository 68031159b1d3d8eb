// Package edit changes datasets in folders, flat or of Zarr, without rewriting them. Each change makes a generation: a
// manifest that lists the files of its columns, and shares most of them with the generation before. Readers keep the
// generation that they opened. Package rewrite changes HDF5 files.
//
// A change is committed by creating the manifest of the next generation, which fails if another writer created it
// first; the change is then made again on top of the other writer's, or refused if it no longer fits. [Dataset.Log] lists
// the changes, [Dataset.Tag] names a generation, [Dataset.Restore] commits an earlier one again, and [Dataset.Prune]
// removes what no kept generation needs.
//
// [At] finds a dataset by its path, and [InBucket] finds a dataset in a bucket, where the same protocol runs by
// conditional writes.
package edit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/zarr"
)

// Options configures a change. The zero value is usable.
type Options struct {
	By string // the author of the change in the log: a command, a call

	// Of is the generation to whose records the values of AddColumn and SetColumn belong; 0 is the newest one. Records
	// that were deleted in that generation get no values from AddColumn, and keep their values in SetColumn. If records
	// were appended or restored since, the change is an error: they have no values.
	Of int

	// Journal keeps the values of AddColumn and SetColumn that were written before an error or the end of the process,
	// for a later call to continue after them. nil keeps none.
	Journal *store.Journal
}

// Values returns the values of a column in the order of the records, from record number first on: the bytes of the
// field's shape, little endian, or any number of rows for a ragged field. The bytes are copied. An error ends the column.
type Values func(first int64) iter.Seq2[[]byte, error]

// AddColumn adds a field with a value for each record to the dataset. It writes the column and a manifest, and
// rewrites no file. Bytes, statistics and checksums are the same as in a dataset that was written with the field from
// the start. It returns the manifest of the new generation.
//
// The error is store.ErrExist if the dataset has a field with the name of the new field.
func (d *Dataset) AddColumn(f store.Field, values Values, opts Options) (*store.Manifest, error) {
	m, err := d.putColumn(f, values, write.New, opts)
	if err != nil {
		return nil, fmt.Errorf("store: add column %q to %q: %w", f.Name, d.name, err)
	}
	return m, nil
}

// SetColumn replaces the values and the type of an existing field. Earlier generations keep their values. Deleted
// records keep their values, too, if the type stays the same.
func (d *Dataset) SetColumn(f store.Field, values Values, opts Options) (*store.Manifest, error) {
	m, err := d.putColumn(f, values, write.Existing, opts)
	if err != nil {
		return nil, fmt.Errorf("store: set column %q of %q: %w", f.Name, d.name, err)
	}
	return m, nil
}

func (d *Dataset) putColumn(f store.Field, values Values, replace write.Replace, opts Options) (*store.Manifest,
	error) {
	m, err := d.Manifest("")
	if err != nil {
		return nil, err
	}
	if err := CheckColumn(m, f, replace); err != nil {
		if errors.Is(err, store.ErrExist) {
			err = errors.Join(err, write.DiscardColumn(d.home, f.Name))
		}
		return nil, err
	}
	o := write.ColumnOptions{Of: opts.Of, Journal: opts.Journal, Arrays: zarr.Columns{}}
	end := func() error { return nil }
	if replace == write.Existing {
		if end, err = keepOld(d, f, &o); err != nil {
			return nil, err
		}
	}
	c, err := write.CreateColumn(d.home, f, o)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	m, err = fill(c, f, values, replace, opts)
	return m, errors.Join(err, c.Close(), end())
}

// keepOld gives the column that is set the values of deleted records, if these are values of the new type. Without
// them, Undelete would be refused after the change.
func keepOld(d *Dataset, f store.Field, o *write.ColumnOptions) (end func() error, err error) {
	end = func() error { return nil }
	m, err := d.Manifest("")
	if err != nil || m.Deleted == nil {
		return end, err
	}
	i := m.Schema().Index(f.Name)
	if i < 0 || !fits(m.Fields[i], f) {
		return end, nil
	}
	if o.Lacks, err = m.Deleted.Lacks(f.Name, m.Records); err != nil {
		return end, err
	}
	ds, ended, err := d.Records(m.Generation, []string{f.Name}, All)
	if err != nil {
		return end, err
	}
	o.Old = valueAt(ds)
	return ended, nil
}

// fits reports whether values of the field old are also values of f.
func fits(old, f store.Field) bool {
	return old.DType == f.DType && old.Ragged == f.Ragged && slices.Equal(old.Shape, f.Shape) &&
		old.Content == f.Content && old.Layout == f.Layout &&
		len(old.Classes) <= len(f.Classes) && slices.Equal(old.Classes, f.Classes[:len(old.Classes)])
}

// valueAt returns a function that reads the value of a record in the only field of a dataset. The function reuses its
// memory.
func valueAt(ds *mmapds.Dataset) write.Old {
	f := ds.Schema().Fields[0]
	offsets, value := make([]int64, 2), []byte{}
	if !f.Ragged {
		value = make([]byte, f.RecordBytes())
	}
	return func(i int64) (_ []byte, err error) {
		if f.Ragged {
			value, err = ds.GatherRagged(context.Background(), f.Name, []int{int(i)}, offsets, value)
			return value, err
		}
		return value, ds.Gather(context.Background(), f.Name, []int{int(i)}, value)
	}
}

// CheckColumn refuses a column that the dataset with manifest m cannot have, before hours are spent on computing its
// values.
func CheckColumn(m *store.Manifest, f store.Field, replace write.Replace) error {
	i := m.Schema().Index(f.Name)
	switch {
	case replace == write.New && i >= 0:
		return layout.WithMark(fmt.Errorf("it has a column %q already; set replaces one", f.Name), store.ErrExist)
	case replace == write.Existing && i < 0:
		return fmt.Errorf("it has no column %q; add makes one", f.Name)
	case f.Instances != "" || i >= 0 && m.Fields[i].Instances != "":
		return fmt.Errorf("column %q has a row for each instance, as other columns have: only a new dataset can "+
			"have it: %w",
			f.Name, store.ErrUnsupported)
	}
	fields := append(append([]store.Field(nil), m.Fields...), f)
	if i >= 0 {
		fields = append([]store.Field(nil), m.Fields...)
		fields[i] = f
	}
	return store.Schema{Fields: fields}.Validate()
}

// NotFlat returns err, the error of reading the manifest at path, or a more helpful error if the dataset has no
// generations at all.
func NotFlat(path string, err error) error {
	if is := notFlat(path); is != nil {
		return is
	}
	return err
}

// notFlat returns why the dataset at path has no generations; nil if it has.
func notFlat(path string) error {
	d, err := store.Open(path, store.OpenOptions{Packed: true})
	switch {
	case err == nil && d.Manifest == nil:
		err = store.NoGenerations(path)
	case err == nil && d.Format == "hdf5":
		err = layout.OneGeneration(layout.Folder(path))
	}
	return err
}

// keepEvery is how often values are made durable, so that a later call continues after them. A shorter time would cost
// more waiting for the disk, a longer one more work after an interruption.
const keepEvery = 10 * time.Second

// fill writes the values and commits the column. After an error it makes the values so far durable: with a Journal a
// later call continues after them.
func fill(c *write.ColumnWriter, f store.Field, values Values, replace write.Replace, opts Options) (*store.Manifest,
	error) {
	if c.Next() < c.Records() {
		kept := time.Now()
		for value, err := range values(c.Next()) {
			if err == nil {
				err = c.Append(value)
			}
			if err == nil && opts.Journal != nil && time.Since(kept) > keepEvery {
				err, kept = c.Checkpoint(nil), time.Now()
			}
			if err != nil {
				return nil, errors.Join(err, c.Checkpoint(nil))
			}
		}
	}
	if c.Next() < c.Records() {
		err := fmt.Errorf("there are %d values, and the dataset has %d records", c.Next(), c.Records())
		return nil, errors.Join(err, c.Checkpoint(nil))
	}
	operation := "add column"
	if replace == write.Existing {
		operation = "set column"
	}
	return c.Commit(replace, store.Change{Operation: operation, Columns: []string{f.Name}, By: opts.By})
}

// DropColumn leaves columns out of the next generation. Their files stay for earlier generations, until Prune.
func (d *Dataset) DropColumn(names []string, opts Options) (*store.Manifest, error) {
	m, err := write.Edit(d.home, store.Change{Operation: "drop column", Columns: names, By: opts.By},
		func(e *write.Editing) error { return e.Drop(names...) })
	if err != nil {
		return nil, fmt.Errorf("store: drop columns of %q: %w", d.name, err)
	}
	return m, nil
}

// RenameColumn gives a column another name in the next generation. Its files keep their names.
func (d *Dataset) RenameColumn(name, to string, opts Options) (*store.Manifest, error) {
	m, err := write.Edit(d.home, store.Change{Operation: "rename column", Columns: []string{name, to}, By: opts.By},
		func(e *write.Editing) error { return e.Rename(name, to) })
	if err != nil {
		return nil, fmt.Errorf("store: rename column %q of %q: %w", name, d.name, err)
	}
	return m, nil
}

// Restore makes the next generation a copy of an earlier one, which is a number or a tag.
func (d *Dataset) Restore(generation string, opts Options) (*store.Manifest, error) {
	m, err := d.restore(generation, opts)
	if err != nil {
		return nil, fmt.Errorf("store: restore %q: %w", d.name, err)
	}
	return m, nil
}

func (d *Dataset) restore(generation string, opts Options) (*store.Manifest, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	old, err := d.lists.Manifest(generation)
	if err != nil {
		return nil, err
	}
	return write.Restore(d.home, old, store.Change{Operation: "restore", From: old.Generation, By: opts.By})
}

// Tag names a generation, which can then be opened as path@name and which Prune keeps. A tag is never moved, as
// somebody may rely on what it names: the error is store.ErrExist if the name is in use.
func (d *Dataset) Tag(name string, generation int) error {
	if err := d.tag(name, generation); err != nil {
		return fmt.Errorf("store: tag %q of %q: %w", name, d.name, err)
	}
	return nil
}

func (d *Dataset) tag(name string, generation int) error {
	if err := d.check(); err != nil {
		return err
	}
	if !layout.IsName(name) || allDigits(name) {
		return errors.New("a tag is 1 to 100 letters, digits, _ and -, not starting with -, and not a number")
	}
	m, err := d.lists.Manifest(strconv.Itoa(generation))
	if err != nil {
		return err
	}
	text, err := json.Marshal(struct {
		store.Tag
		Write string `json:"write"` // by which this call recognizes its own tag when the answer was lost
	}{store.Tag{Generation: m.Generation, ID: m.ID}, write.RandomTag() + write.RandomTag()})
	if err != nil {
		return err
	}
	return d.home.CreateTag(m, name, append(text, '\n'))
}

func allDigits(name string) bool {
	for _, c := range name {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Untag removes a tag. The generation stays until Prune.
func (d *Dataset) Untag(name string) error {
	err := d.check()
	if err == nil {
		err = d.home.RemoveTag(name)
	}
	if err != nil {
		return fmt.Errorf("store: tag %q of %q: %w", name, d.name, err)
	}
	return nil
}
