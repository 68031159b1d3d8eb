package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// ColumnWriter writes the values of one field, for all records of a dataset, to new files next to the files of the
// other fields. The dataset stays as it is until Commit. A ColumnWriter serves one goroutine.
type ColumnWriter struct {
	home     Home
	free     func() // removes what Home.Spool made
	base     *store.Manifest
	field    store.Field
	stage    *Stage
	shards   *ShardWriter
	arrays   ArrayWriter // nil: the shards become files of the dataset as they are
	splits   SplitRanges
	next     int64         // the place of the next stored record
	appended int64         // values that were appended, of records that are not deleted
	deleted  []uint64      // the set of deleted records of base; nil if there are none
	missing  []uint64      // the set of deleted records without a value
	old      Old           // the values of the other deleted records
	zeros    []byte        // the value of a record of missing
	block    *digest.Block // records that were not written yet
}

// Limits of a block: about how many bytes of values, and how many records, are gathered before they are written.
const (
	columnBytes   = 1 << 20
	columnRecords = 1 << 16
)

// Old returns the value that a column has for the deleted record at a place. The bytes are valid until the next call.
type Old func(place int64) ([]byte, error)

// ColumnOptions configures a ColumnWriter.
type ColumnOptions struct {
	Of      int            // the generation whose records have values; 0 is the newest one
	Journal *store.Journal // with Resume, a build of this field that stopped is continued, if the same records are deleted
	Arrays  ArrayWriter    // for a dataset of Zarr; nil elsewhere

	// Old returns the values of deleted records in a column that is replaced. With these values in the new column, too,
	// Undelete can restore the records. Lacks marks deleted records without a value. A nil Old has no values.
	Old   Old
	Lacks []uint64
}

// CreateColumn begins a column of a dataset. The journal's options include the set of deleted records and the
// generation of the last append: an interrupted build that is continued after either has changed would give values to
// other records.
func CreateColumn(home Home, f store.Field, o ColumnOptions) (*ColumnWriter, error) {
	if err := home.Check(); err != nil {
		return nil, err
	}
	schema := store.Schema{Fields: []store.Field{f}}
	if err := f.Spec.Validate(); err != nil {
		return nil, err
	}
	base, deleted, err := readBase(home, o.Of)
	if err != nil {
		return nil, err
	}
	dest, free, err := home.Spool(f.Name)
	if err != nil {
		return nil, err
	}
	stage, err := OpenStage(dest, StageOptions{Keep: o.Journal != nil})
	if err != nil {
		free()
		return nil, err
	}
	if base.Metadata == nil {
		o.Arrays = nil
	}
	c := &ColumnWriter{home: home, free: free, base: base, field: f, stage: stage, arrays: o.Arrays,
		splits: SplitRangesOf(base.Splits, base.Records), deleted: deleted, missing: deleted, old: o.Old}
	without := deleted
	if deleted != nil && o.Old != nil {
		c.missing = make([]uint64, len(deleted))
		for k, w := range o.Lacks {
			c.missing[k] = deleted[k] & w
		}
		without = slices.Concat(deleted, c.missing)
	}
	shards := ShardOptions{Splits: base.SplitNames(), Journal: o.Journal, Cuts: cutsOf(base), Gone: without,
		Scratch: len(base.Shards) == 0, Appended: lastAppend(home, base)}
	if err = c.frame(&shards); err == nil {
		c.shards, err = NewShardWriter(stage, schema, shards)
	}
	if err != nil {
		err = errors.Join(err, stage.Leave())
		free()
		return nil, err
	}
	c.next = c.shards.Records()
	c.leaveOut()
	c.block = digest.NewBlock(schema.Specs())
	c.block.Values[0] = make([]byte, 0, max(f.RecordBytes(), columnBytes)) // so large that it is aligned for every type
	return c, nil
}

// frame asks the container in which form files of the stage become files of an array without a copy, and has the
// ShardWriter write that form.
func (c *ColumnWriter) frame(o *ShardOptions) error {
	if c.arrays == nil {
		return nil
	}
	frame, cuts, err := c.arrays.Frame(c.base, c.home.Folder(), c.field)
	if err != nil || frame == nil {
		return err
	}
	o.Frame, o.Cuts, o.Scratch = frame, cuts, false
	return nil
}

// readBase returns the manifest of a generation, 0 for the newest generation, and the set of its deleted records, nil
// if no record is deleted.
func readBase(home Home, generation int) (base *store.Manifest, deleted []uint64, err error) {
	name := ""
	if generation > 0 {
		name = strconv.Itoa(generation)
	}
	if base, err = home.Folder().Manifest(name); err != nil || base.Deleted == nil {
		return base, nil, err
	}
	deleted, err = base.Deleted.Words(base.Records)
	return base, deleted, err
}

// DiscardColumn removes the staging directory of a column whose writer was killed after it had committed the column.
func DiscardColumn(home Home, name string) error {
	dest, free, err := home.Spool(name)
	if err != nil {
		return err
	}
	defer free()
	if left, err := filepath.Glob(StageDir(dest) + "*"); err != nil || len(left) == 0 {
		return err
	}
	stage, err := OpenStage(dest, StageOptions{})
	if err != nil {
		return err
	}
	return stage.Abort()
}

// cutsOf returns how many records each shard of a column has: as many as the shards of the dataset, since a shard's
// entry in the manifest lists files of all columns. A dataset without shards (Zarr, HDF5) is one piece.
func cutsOf(m *store.Manifest) []int64 {
	if len(m.Shards) == 0 {
		return []int64{m.Records}
	}
	cuts := make([]int64, len(m.Shards))
	for i, s := range m.Shards {
		cuts[i] = s.Count
	}
	return cuts
}

// leaveOut prepares the value of deleted records for which the caller has no value: zeros in a fixed field, no rows
// in a ragged field. It also counts the values that a resumed column has: next counts all stored records, and
// appended only the records that are not deleted.
func (c *ColumnWriter) leaveOut() {
	c.appended = c.next
	if c.deleted == nil {
		return
	}
	if !c.field.Ragged {
		c.zeros = make([]byte, c.field.RecordBytes())
	}
	for row := range c.next {
		if marked(c.deleted, row) {
			c.appended--
		}
	}
}

// marked reports whether a record is in a set; a nil set is empty.
func marked(words []uint64, row int64) bool {
	return words != nil && words[row/64]>>(row%64)&1 == 1
}

// Next returns the number of the record whose value comes next, not counting deleted records: 0, unless the column is
// resumed.
func (c *ColumnWriter) Next() int64 { return c.appended }

// Records returns how many records the dataset has, without deleted ones.
func (c *ColumnWriter) Records() int64 { return c.base.Live() }

// Append adds the value of the next record: the bytes of the field's shape or, of a ragged field, any number of rows.
func (c *ColumnWriter) Append(value []byte) error {
	if c.appended == c.Records() {
		return fmt.Errorf("there are more than %d values, and the dataset has %d records", c.appended, c.Records())
	}
	if err := CheckValue(c.field, value); err != nil {
		return fmt.Errorf("record %d: %w", c.appended, err)
	}
	if err := c.skip(); err != nil {
		return err
	}
	c.appended++
	return c.add(value)
}

// CheckValue refuses bytes that cannot be a value of a field.
func CheckValue(f store.Field, value []byte) error {
	size := f.RecordBytes()
	if !f.Ragged && len(value) != size || len(value)%size != 0 {
		return fmt.Errorf("a value of %d bytes; a value of %s has %s", len(value), brief(f), sizesOf(f))
	}
	return nil
}

// skip adds values for the deleted records that come next: their old values, or zeros. Every column has a row for each
// stored record, so that row i is the same record in all columns and a delete rewrites no file.
func (c *ColumnWriter) skip() error {
	for c.next < c.base.Records && marked(c.deleted, c.next) {
		value, err := c.left(c.next)
		if err == nil {
			err = c.add(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// left returns the value that is stored for a deleted record.
func (c *ColumnWriter) left(place int64) ([]byte, error) {
	if marked(c.missing, place) {
		return c.zeros, nil
	}
	return c.old(place)
}

// add adds the value of the next stored record to the block. Statistics leave out values that stand for none, and a
// block is of one split, so the block is written whenever either changes.
func (c *ColumnWriter) add(value []byte) error {
	if missing := marked(c.missing, c.next); missing != c.shards.manifest.noValues {
		if err := c.flush(); err != nil {
			return err
		}
		c.shards.manifest.noValues = missing
	}
	b := c.block
	b.Values[0] = append(b.Values[0], value...)
	if c.field.Ragged {
		b.Ends[0] = append(b.Ends[0], len(b.Values[0]))
	}
	b.N++
	c.next++
	full := len(b.Values[0])+c.field.RecordBytes() > columnBytes || b.N == columnRecords
	if full || c.next == c.base.Records || c.splits[c.splits.Of(c.next)].First == c.next { // or a range of a split ends
		return c.flush()
	}
	return nil
}

// flush writes the gathered block to the shards.
func (c *ColumnWriter) flush() error {
	b := c.block
	if b.N == 0 {
		return nil
	}
	b.Split = c.splits[c.splits.Of(c.next-1)].Name // of the last record
	err := c.shards.AppendBlock(b)
	b.N, b.Values[0], b.Ends[0] = 0, b.Values[0][:0], b.Ends[0][:0]
	return err
}

func sizesOf(f store.Field) string {
	if f.Ragged {
		return fmt.Sprintf("multiples of %d bytes", f.RecordBytes())
	}
	return fmt.Sprintf("%d bytes", f.RecordBytes())
}

// Checkpoint makes all values so far durable, together with a note of the caller, so that a later writer can continue
// after them.
func (c *ColumnWriter) Checkpoint(note json.RawMessage) error {
	if err := c.flush(); err != nil {
		return err
	}
	return c.shards.Checkpoint(note)
}

// Commit makes the column part of the next generation: as a new column at the end or, if replace says so, in place of
// the column of its name. Every record must have a value.
func (c *ColumnWriter) Commit(replace Replace, change store.Change) (*store.Manifest, error) {
	if c.appended < c.Records() {
		return nil, fmt.Errorf("there are %d values, and the dataset has %d records", c.appended, c.Records())
	}
	if err := errors.Join(c.skip(), c.flush()); err != nil {
		return nil, err
	}
	if err := c.shards.Checkpoint(nil); err != nil {
		return nil, err
	}
	m, err := c.commit(replace, change)
	if err != nil {
		return nil, err
	}
	return m, errors.Join(c.shards.Close(), c.stage.Abort())
}

// commit publishes the files under names that no generation has, then commits a manifest that lists them. In this order
// a kill leaves files without a manifest, which Prune removes, and never a manifest without its files. If the commit
// fails, the files are removed, unless it is unknown whether it failed.
func (c *ColumnWriter) commit(replace Replace, change store.Change) (*store.Manifest, error) {
	if c.arrays != nil {
		return c.commitArrays(replace, change)
	}
	f := c.edited()
	files, err := c.publish()
	if err != nil {
		return nil, err
	}
	f.files = files
	m, err := Edit(c.home, change, func(e *Editing) error { return e.put(c, f, replace) })
	if err != nil {
		return nil, errors.Join(err, c.unpublish(files, err))
	}
	return m, nil
}

// edited returns the field for Editing, with the state of its statistics and identity and without files or arrays.
func (c *ColumnWriter) edited() editedField {
	return editedField{Field: c.field, of: c.shards.manifest}
}

// publish adds the files of the new column to the dataset, under names with a random tag: files of an older column
// with the same names belong to earlier generations and stay.
func (c *ColumnWriter) publish() (files [][]store.File, err error) {
	tag, all := RandomTag(), []Published{}
	for _, s := range c.shards.sections[0].shards {
		var list []store.File
		for _, f := range s.Files {
			from := f.Name
			f.Name = layout.Tagged(f.Name, tag)
			list, all = append(list, f), append(all, Published{from, f})
		}
		files = append(files, list)
	}
	return files, c.home.Publish(c.stage, all)
}

// unpublish removes the files of a column that was not committed. If the outcome of the commit is unknown, the files
// stay: a generation may list them, and Prune removes them if no generation does.
func (c *ColumnWriter) unpublish(files [][]store.File, why error) error {
	if mayBeListed(why) {
		return nil
	}
	var names []string
	for _, list := range files {
		for _, f := range list {
			names = append(names, f.Name)
		}
	}
	return c.home.Unpublish(names)
}

// Replace says whether a column may be there already.
type Replace int

// A column is New, or Existing: then it replaces the column with its name.
const (
	New Replace = iota
	Existing
)

// put makes a column part of the next generation. It refuses a column that was begun before other records were appended
// or records changed their split: its values would belong to other records.
func (e *Editing) put(c *ColumnWriter, f editedField, replace Replace) error {
	if e.Base.Records != c.base.Records || Shared(e.Base, c.base) != c.base.Records ||
		!slices.EqualFunc(e.Base.Splits, c.base.Splits, sameSplit) {
		return fmt.Errorf("records were appended to it since the column was begun, in generation %d: the column has "+
			"no values "+
			"for them", c.base.Generation)
	}
	if err := e.checkGone(c); err != nil {
		return err
	}
	return e.set(f, replace)
}

// Put adds or replaces a field of a dataset whose files are written anew. A field that is replaced keeps how its column
// is compressed.
func (e *Editing) Put(f store.Field, replace Replace) error {
	next := editedField{Field: f}
	if i := e.Base.Schema().Index(f.Name); i >= 0 {
		next.array.storage = e.fields[i].array.storage
	}
	return e.set(next, replace)
}

// set adds a field at the end, or replaces the field of its name.
func (e *Editing) set(f editedField, replace Replace) error {
	i := e.Base.Schema().Index(f.Name)
	switch {
	case replace == New && i >= 0:
		return layout.WithMark(fmt.Errorf("it has a column %q already; set replaces one", f.Name), store.ErrExist)
	case replace == New:
		e.fields = append(e.fields, f)
	case i < 0:
		return fmt.Errorf("it has no column %q; it has %s; add makes one", f.Name, fieldNames(e.Base))
	default:
		e.fields[i] = f
	}
	return nil
}

// checkGone makes sure that the column has a value for every record that is not deleted. Records that were deleted
// after the column began have values, too. Records that were restored since then may have no values, so the column
// is refused.
func (e *Editing) checkGone(c *ColumnWriter) error {
	if c.deleted == nil {
		delete(e.withoutValues, c.field.Name) // it has values for all
		return nil
	}
	for k, w := range c.deleted {
		if e.deleted == nil || w&^e.deleted[k] != 0 {
			return fmt.Errorf("records were restored since the column was begun, in generation %d: the column has no "+
				"values for them", c.base.Generation)
		}
	}
	e.setWithoutValues(c.field.Name, c.missing)
	return nil
}

func sameSplit(a, b store.Split) bool { return a.Name == b.Name && slices.Equal(a.Ranges, b.Ranges) }

// Close discards a column that was not committed. With a Journal the values up to the last Checkpoint are kept.
func (c *ColumnWriter) Close() error {
	err := errors.Join(c.shards.Close(), c.stage.Leave())
	c.free()
	return err
}

// Names of the staging directory of a column, which is in the folder of the dataset.
const (
	ColumnName  = ".column" // follows the name of the field
	columnStage = ColumnName + ".building"
)

// IsColumnStage reports whether a name in the folder of a dataset is the staging directory of a column, whose writer is
// at work or was killed.
func IsColumnStage(name string) bool {
	return strings.HasPrefix(name, ".") && strings.Contains(name, columnStage)
}
