// Package rewrite changes datasets in HDF5 files: columns are added, set, dropped and renamed, and records deleted.
// Each change writes a new file beside the old one and renames it to the old one's name. So a kill leaves the old file
// or the new file, programs that have the old file open keep it, and the new file has no byte of deleted records or of
// values that were replaced. Package edit changes datasets in folders without writing their columns again.
package rewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/block"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// Options configures a change. The zero value is usable.
type Options struct {
	edit.Options // Of is 0 or the file's generation; any other number is store.ErrBusy

	// Begin is called before the new file is written, with about how many bytes it will have, and with its number of
	// records. Progress is called after each n more records. Both may be nil.
	Begin    func(bytes, records int64)
	Progress func(n int64)

	// Compressing is called when the records are collected and columns are about to be compressed, with about how many
	// bytes these columns have. Compressed is called after each n more bytes. Both may be nil.
	Compressing func(bytes int64)
	Compressed  func(n int64)
}

// AddColumn adds a field with a value for each record to the dataset in the HDF5 file at path. The error is
// store.ErrExist if the dataset has a field of that name.
func AddColumn(path string, f store.Field, values edit.Values, opts Options) (*store.Manifest, error) {
	return put(path, f, values, write.New, opts)
}

// SetColumn replaces the values and the type of an existing field.
func SetColumn(path string, f store.Field, values edit.Values, opts Options) (*store.Manifest, error) {
	return put(path, f, values, write.Existing, opts)
}

func put(path string, f store.Field, values edit.Values, replace write.Replace, opts Options) (*store.Manifest, error) {
	change := store.Change{Operation: "add column", Columns: []string{f.Name}, By: opts.By}
	if replace == write.Existing {
		change.Operation = "set column"
	}
	return file(path).change(change, opts, func(c *changing) error {
		if err := edit.CheckColumn(c.base, f, replace); err != nil {
			return err
		}
		c.values = values
		return c.next.Put(f, replace)
	})
}

// DropColumn leaves columns out of the new file.
func DropColumn(path string, names []string, opts Options) (*store.Manifest, error) {
	change := store.Change{Operation: "drop column", Columns: names, By: opts.By}
	return file(path).change(change, opts, func(c *changing) error { return c.next.Drop(names...) })
}

// RenameColumn gives a column another name.
func RenameColumn(path, name, to string, opts Options) (*store.Manifest, error) {
	change := store.Change{Operation: "rename column", Columns: []string{name, to}, By: opts.By}
	return file(path).change(change, opts, func(c *changing) error { return c.next.Rename(name, to) })
}

// Delete leaves records out of the new file. Nothing in the new file tells anything about them, neither the condition
// that chose them nor opts.By.
func Delete(path string, records edit.Chosen, opts Options) (*store.Manifest, error) {
	opts.Of = records.Generation
	return file(path).change(store.Change{Operation: "delete"}, opts, func(c *changing) error {
		return c.delete(records.Words)
	})
}

// file is the path of an HDF5 file.
type file string

// changing is an HDF5 file and its next generation, while the new file is made.
type changing struct {
	path    string
	data    *mmapds.Dataset
	base    *store.Manifest
	next    *write.Editing
	values  edit.Values // values of the field that is added or replaced; or nil
	deleted []uint64    // stored records that are left out; or nil
	change  store.Change
	opts    Options
}

func (f file) change(change store.Change, opts Options, edit func(c *changing) error) (*store.Manifest, error) {
	m, err := f.replace(change, opts, edit)
	if err != nil {
		return nil, fmt.Errorf("store: %s of %q: %w", change.Operation, string(f), err)
	}
	return m, nil
}

// replace writes the changed dataset beside the file and renames it over the file. It holds a shared lock of the old
// file meanwhile, so that no program changes the file while it is read, and verifies blocks as it reads them: a flipped
// bit would get a new checksum, and never be found.
func (f file) replace(change store.Change, opts Options, edit func(c *changing) error) (*store.Manifest, error) {
	path, err := filepath.EvalSymlinks(layout.Folder(string(f))) // replace the file, not a symbolic link to it
	if err != nil {
		return nil, layout.WithoutPath(err)
	}
	held, err := lease.Shared("", path) // libhdf5 locks a file exclusively while it changes it
	if errors.Is(err, lease.ErrBusy) {
		return nil, fmt.Errorf("another program has it open to change it: %w", store.ErrBusy)
	}
	if err != nil {
		return nil, layout.WithoutPath(err)
	}
	defer held.Close()
	if runtime.GOOS == "windows" { // Windows has no such locks, and cannot replace an open file
		_ = held.Close()
	}
	m, err := store.ReadManifest(path)
	if err != nil {
		return nil, err
	}
	var names []string // including the field of source names, which Open leaves out unless it is named
	for _, f := range m.Fields {
		names = append(names, f.Name)
	}
	data, err := mmapds.Open(path, mmapds.WithFields(names...), mmapds.WithVerify(mmapds.VerifyFirstTouch))
	if err != nil {
		return nil, err
	}
	defer data.Close()
	c := &changing{path: path, data: data, base: data.Manifest(), change: change, opts: opts}
	if c.base == nil {
		return nil, store.NoGenerations(path)
	}
	if opts.Of > 0 && opts.Of != c.base.Generation {
		return nil, fmt.Errorf("it is generation %d now, and no longer %d, as HDF5 has one generation; open it again: %w",
			c.base.Generation, opts.Of, store.ErrBusy)
	}
	if err := checkStopped(path); err != nil {
		return nil, err
	}
	if c.next, err = write.NewEditing(c.base); err != nil {
		return nil, err
	}
	if err := edit(c); err != nil {
		return nil, err
	}
	return c.write()
}

// changeInput is a journal input that only a change of a file has, by which checkStopped tells it from an append.
const changeInput = "change of an HDF5 file"

// checkStopped refuses to remove the staging directory of an interrupted append: its records would be lost.
func checkStopped(path string) error {
	if !write.Unfinished(path) {
		return nil
	}
	inputs, _, _, err := write.ReadUnfinished(path)
	if err == nil && inputs[changeInput] != "" {
		return nil // Create resumes that change, or starts it over
	}
	return errors.New("another write to it was stopped; finish that with --resume, or remove " + write.StageDir(path))
}

// delete leaves stored records out of the new file.
func (c *changing) delete(words []uint64) error {
	if int64(len(words)) != (c.base.Records+63)/64 {
		return errors.New("the words are not of as many records as it has stored")
	}
	deleted, err := c.base.Deleted.Words(c.base.Records)
	if err != nil {
		return err
	}
	c.deleted = slices.Clone(words)
	left := c.base.Live()
	for k := range words {
		if deleted != nil {
			c.deleted[k] &^= deleted[k]
		}
		left -= int64(bits.OnesCount64(c.deleted[k]))
	}
	c.change.Records = c.base.Live() - left
	return write.CheckDelete(c.change.Records, left)
}

// isDeleted reports whether this change leaves out a record of the old file.
func (c *changing) isDeleted(record int) bool {
	if c.deleted == nil {
		return false
	}
	place := c.data.Stored(record)
	return c.deleted[place/64]>>(place%64)&1 != 0
}

// splits returns the splits with the record numbers of the new file.
func (c *changing) splits() ([]store.Split, error) {
	list, err := c.base.LiveSplits()
	if err != nil || c.deleted == nil {
		return list, err
	}
	before := make([]int64, c.data.Len()+1) // how many of the first i records stay
	for i := range c.data.Len() {
		before[i+1] = before[i]
		if !c.isDeleted(i) {
			before[i+1]++
		}
	}
	out := make([]store.Split, len(list))
	for k, s := range list {
		out[k] = store.Split{Name: s.Name, Ranges: [][2]int64{}}
		for _, r := range s.Ranges {
			if a, b := before[r[0]], before[r[1]]; a < b {
				out[k].Ranges = append(out[k].Ranges, [2]int64{a, b})
			}
		}
	}
	return out, nil
}

// column is a field of the new file and where its values come from.
type column struct {
	store.Field
	from  string // the name of the field in the old file; "" for the one that has new values
	block block.Block
}

// write makes the new file and puts it in place of the old file.
func (c *changing) write() (*store.Manifest, error) {
	fields, origins, storage := c.next.Content()
	columns := make([]column, len(fields))
	for i, f := range fields {
		columns[i] = column{Field: f, from: origins[i]}
	}
	splits, err := c.splits()
	if err != nil {
		return nil, err
	}
	records := c.base.Live() - c.change.Records
	o := hdf5.Options{Records: records, Overwrite: true, Splits: c.base.SplitNames(),
		Replaces: &hdf5.Replacement{Base: c.base, Change: c.change, Splits: splits, Storage: storage}}
	if c.opts.Journal != nil {
		o.Journal = write.WithInput(c.opts.Journal, changeInput,
			fmt.Sprintf("%s %q of %s", c.change.Operation, c.change.Columns, c.base.ID))
	}
	if c.opts.Compressed != nil {
		o.Progress = func(n int64) error { c.opts.Compressed(n); return nil }
	}
	w, err := hdf5.Create(c.path, store.Schema{Fields: fields}, o)
	if err != nil {
		return nil, unnamed(err)
	}
	if c.opts.Begin != nil {
		c.opts.Begin(c.size(columns, records), records)
	}
	err = errors.Join(c.fill(w, columns, splits, records), c.data.Close()) // close the old file before it is replaced
	var m *store.Manifest
	if err == nil {
		if c.opts.Compressing != nil && len(storage) > 0 {
			c.opts.Compressing(compressed(storage))
		}
		m, err = w.Commit(store.Info{})
	}
	return m, errors.Join(unnamed(err), w.Close())
}

// compressed returns how many bytes the compressed columns had in the old file before compression.
func compressed(storage map[string]*store.Storage) (bytes int64) {
	for _, s := range storage {
		bytes += s.Bytes
	}
	return bytes
}

// unnamed returns the cause of a Writer's error: the Writer names the file, and so do the errors of this package.
func unnamed(err error) error { return cmp.Or(errors.Unwrap(err), err) }

// size returns about how many bytes the new file will have. A ragged column with new values is not counted.
func (c *changing) size(columns []column, records int64) (bytes int64) {
	for _, f := range columns {
		if f.from == "" {
			if !f.Ragged {
				bytes += records * int64(f.RecordBytes())
			}
			continue
		}
		for _, part := range layout.Columns([]tensor.Spec{c.base.Fields[c.base.Schema().Index(f.from)].Spec}) {
			if s := c.base.Storage[part.Name]; s != nil {
				bytes += s.Stored
				continue
			}
			old := layout.Of(c.data.Files()).Column(c.base.Schema().Index(f.from), part.Part)
			bytes += old.Rows * int64(old.Spec.RecordBytes())
		}
	}
	return bytes
}

// fill writes the records that the Writer does not have yet.
func (c *changing) fill(w store.Writer, columns []column, splits []store.Split, records int64) error {
	first := w.Kept().Records
	next, stop := func() ([]byte, error, bool) { return nil, nil, true }, func() {}
	if c.values != nil && first < records {
		next, stop = iter.Pull2(c.values(first))
	}
	defer stop()
	schema := store.Schema{}
	for _, f := range columns {
		schema.Fields = append(schema.Fields, f.Field)
	}
	r, ranges, kept, at := store.NewRecord(schema), write.SplitRangesOf(splits, records), time.Now(), first
	for numbers := range c.blocks(first) {
		if err := c.read(columns, numbers); err != nil {
			return err
		}
		for k := range numbers {
			value, err, ok := next()
			if !ok && err == nil {
				err = fmt.Errorf("there are %d values, and the dataset has %d records", at, records)
			}
			if err == nil {
				err = c.append(w, r, columns, value, k, ranges[ranges.Of(at)].Name)
			}
			if err != nil {
				return errors.Join(err, w.Checkpoint(nil))
			}
			if at++; c.opts.Journal != nil && time.Since(kept) > keepEvery {
				if err := w.Checkpoint(nil); err != nil {
					return err
				}
				kept = time.Now()
			}
		}
		if c.opts.Progress != nil {
			c.opts.Progress(int64(len(numbers)))
		}
	}
	if c.values == nil || first == records {
		return nil
	}
	switch _, err, more := next(); {
	case err != nil:
		return err
	case more:
		return fmt.Errorf("there are more than %d values, and the dataset has %d records", records, records)
	}
	return nil
}

// keepEvery is how often values are made durable, so that a later call continues after them.
const keepEvery = 10 * time.Second

// append adds record k of the block that was read last.
func (c *changing) append(w store.Writer, r *store.Record, columns []column, value []byte, k int, split string) error {
	for i := range columns {
		f := &columns[i]
		if f.from != "" {
			r.Values[i] = f.block.Value(k)
			continue
		}
		if err := write.CheckValue(f.Field, value); err != nil {
			return err
		}
		r.Values[i] = append(r.Values[i][:0], value...)
	}
	r.Split = split
	return w.Append(r)
}

// Limits of a block: bytes and number of the records that are read at once.
const (
	blockBytes   = 4 << 20
	blockRecords = 1 << 16
)

// blocks yields the numbers, in the old file, of the records of the new file, from record first of the new file on.
func (c *changing) blocks(first int64) iter.Seq[[]int] {
	stored := int64(0)
	for _, column := range layout.Of(c.data.Files()).Columns {
		stored += column.Rows * int64(column.Spec.RecordBytes())
	}
	size := int(min(blockRecords, max(1, blockBytes*c.base.Records/max(1, stored))))
	return func(yield func([]int) bool) {
		var block []int
		for i := range c.data.Len() {
			if c.isDeleted(i) {
				continue
			}
			if first--; first >= 0 {
				continue
			}
			if block = append(block, i); len(block) < size {
				continue
			}
			if !yield(block) {
				return
			}
			block = block[:0]
		}
		if len(block) > 0 {
			yield(block)
		}
	}
}

// read reads the values of the given records from the old file.
func (c *changing) read(columns []column, numbers []int) error {
	for i := range columns {
		f := &columns[i]
		if f.from == "" {
			continue
		}
		spec := f.Spec
		spec.Name = f.from
		if err := f.block.Read(context.Background(), c.data, spec, numbers); err != nil {
			return err
		}
	}
	return nil
}
