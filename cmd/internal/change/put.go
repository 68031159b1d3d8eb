package change

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/internal/block"
	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/hdf5/rewrite"
	"github.com/penstock/penstock/tensor"
)

// putColumn commits the column: as a new column or, for the command set, in place of the old one.
func (f *putFlags) putColumn(cmd *cobra.Command, ds *datasetarg.Generations, field store.Field, values edit.Values,
	opts edit.Options) (*store.Manifest, error) {
	add, addToFile := ds.Dataset.AddColumn, rewrite.AddColumn
	if f.replaces {
		add, addToFile = ds.Dataset.SetColumn, rewrite.SetColumn
	}
	return makeChange(cmd, ds, opts,
		func(o edit.Options) (*store.Manifest, error) { return add(field, values, o) },
		func(path string, o rewrite.Options) (*store.Manifest, error) {
			return addToFile(path, field, values, o)
		})
}

// run carries out add or set with the arguments DATASET, NAME and VALUES.
func (f *putFlags) run(cmd *cobra.Command, args []string, opts edit.Options) error {
	ds, err := datasetarg.OpenChanging(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	m, err := f.change(cmd, ds, args[1], args[2], opts)
	return report(cmd, ds.Path, m, errors.Join(err, ds.Close()))
}

// change opens VALUES and writes the column. opts.Of pins the generation that the values belong to:
// if another writer appends or restores records meanwhile, the change is an error and not a column
// whose values are shifted against the records.
func (f *putFlags) change(cmd *cobra.Command, ds *datasetarg.Generations, name, values string,
	opts edit.Options) (*store.Manifest, error) {
	old, err := ds.Manifest()
	if err != nil {
		return nil, err
	}
	base, err := f.base(ds, old)
	if err != nil {
		return nil, err
	}
	opts.Of = base.Generation
	records := base.Live()
	if values == "-" {
		return f.stream(cmd, ds, name, old, records, opts)
	}
	src, err := f.open(cmd.Context(), values, f.selection(name, old))
	if err != nil {
		return nil, err
	}
	m, err := f.put(cmd, ds, name, old, records, src, opts)
	return m, errors.Join(err, src.close())
}

// base returns the manifest of the generation whose records VALUES has: --of, or the newest.
func (f *putFlags) base(ds *datasetarg.Generations, newest *store.Manifest) (*store.Manifest, error) {
	if f.of == "" {
		return newest, nil
	}
	return ds.Dataset.Manifest(f.of)
}

// put chooses the field of VALUES, decides conversion and order of the values, and writes the
// column.
func (f *putFlags) put(cmd *cobra.Command, ds *datasetarg.Generations, name string, old *store.Manifest,
	records int64, src *table, opts edit.Options) (*store.Manifest, error) {
	column, err := src.choose(name, f.field, f.on)
	if err != nil {
		return nil, err
	}
	v := &values{ctx: cmd.Context(), src: src, column: column}
	field := column.Field
	field.Name = name
	if i := old.Schema().Index(name); f.replaces && i >= 0 {
		if field, err = f.like(v, old.Fields[i], field); err != nil {
			return nil, err
		}
	}
	switch {
	case f.on != "":
		if field, err = f.match(cmd, ds, v, old, field); err != nil {
			return nil, err
		}
	case int64(src.Len()) != records:
		return nil, fmt.Errorf("%s has %d records, and %s has %d; to match them by a column of both, use --on",
			src.path, src.Len(), ds.Path, records)
	}
	bar := cli.NewStage(cmd, "column", "write", "values of records")
	if !ds.IsFile() { // else makeChange shows how far it is
		bar.Begin(records)
	}
	v.progress = bar.Add
	defer bar.End()
	return f.putColumn(cmd, ds, field, v.from, opts)
}

// table is VALUES: an open dataset, view or table of another program, with its fields. Whoever
// opened the table calls close.
type table struct {
	loader.Source
	path   string
	fields []store.Field
	close  func() error
}

// selection returns the columns of a table to read, and their types, in the form of --fields; ""
// means all columns with the types that the table suggests.
//
// The key column gets the type that it has in the dataset, and so do values that replace others:
// otherwise a table of digits would be read as integers although the dataset has texts, and no key
// would match. Integer keys keep the table's own width, because keys of any width match.
func (f *putFlags) selection(name string, old *store.Manifest) string {
	if f.fields != "" {
		return f.fields
	}
	i := old.Schema().Index(name)
	if f.on == "" && f.field == "" && i < 0 {
		return "" // all of them
	}
	list := quoted(cmp.Or(f.field, name))
	if f.field != "" && f.field != name {
		list += "=" + name
	}
	if i >= 0 {
		list += typeOf(old.Fields[i])
	}
	if k := old.Schema().Index(f.on); k >= 0 && f.on != cmp.Or(f.field, name) {
		list += "," + quoted(f.on)
		if typ := typeOf(old.Fields[k]); !intType.MatchString(typ) {
			list += typ
		}
	}
	return list
}

// quoted returns the name of a column for --fields, in quotes if it contains a character that has a
// meaning in --fields.
func quoted(column string) string {
	if strings.ContainsAny(column, ",=:+*\"") {
		return `"` + strings.ReplaceAll(column, `"`, `""`) + `"`
	}
	return column
}

// intType matches what typeOf returns for an integer.
var intType = regexp.MustCompile(`^:u?int\d+$`)

// typeOf returns the type of a field for --fields, or "" where no type is given because the table
// itself says what the column holds, as for images.
func typeOf(f store.Field) string {
	axes := ""
	for _, n := range f.Shape {
		axes += fmt.Sprintf(",%d", n)
	}
	switch {
	case f.Content == tensor.Text || f.Content == tensor.SourceName:
		return ":text"
	case f.Content != "" || f.Layout != "":
		return ""
	case len(f.Classes) > 0:
		return ":label"
	case f.Ragged:
		return fmt.Sprintf(":%v[*%s]", f.DType, axes)
	case axes != "":
		return fmt.Sprintf(":%v[%s]", f.DType, axes[1:])
	}
	return fmt.Sprintf(":%v", f.DType)
}

// open opens VALUES as a table: raw samples by package raw, everything else by package datasetarg.
func (f *putFlags) open(ctx context.Context, path, selection string) (*table, error) {
	if raw.Is(path) {
		src, err := raw.Open(ctx, path, raw.Options{Columns: selection})
		if err != nil {
			return nil, err
		}
		return &table{src, path, src.Schema().Fields, src.Close}, nil
	}
	if f.fields != "" {
		return nil, fmt.Errorf("%s: --fields is for tables; the fields of a dataset have their types", path)
	}
	ds, err := new(datasetarg.Cache).Any(ctx, path, datasetarg.Options{})
	if err != nil {
		return nil, err
	}
	return &table{ds.Source, path, ds.Fields, ds.Close}, nil
}

// column is a field of a table and its index in the table's list of fields.
type column struct {
	store.Field
	at int // in the table
}

// choose returns the field that has the values: --field, else the field called name, else the only
// field besides the key. If --field is given and missing, the field called name is taken, because
// selection has a table's column --field renamed to name.
func (t *table) choose(name, field, key string) (column, error) {
	var names, others []string
	for _, f := range t.fields {
		names = append(names, f.Name)
		if f.Name != key {
			others = append(others, f.Name)
		}
	}
	switch {
	case slices.Contains(names, name) && (field == "" || !slices.Contains(names, field)):
		field = name
	case field == "" && len(others) == 1:
		field = others[0]
	case field == "":
		return column{}, fmt.Errorf("%s has the fields %q, and none is called %s: choose one with --field", t.path,
			names, name)
	case !slices.Contains(names, field):
		return column{}, fmt.Errorf("%s has no field %s; it has %q", t.path, field, names)
	}
	i := slices.Index(names, field)
	return column{t.fields[i], i}, nil
}

// values produces the values of a column in the order of the dataset's records, for edit.Values.
type values struct {
	ctx    context.Context
	src    *table
	column column
	// order has the row of src for each record of the dataset, -1 where src has none; nil means
	// that record i is row i.
	order    []int
	missing  func(record int64) ([]byte, error) // the value of a record whose order is -1
	change   func(value []byte) ([]byte, error) // converts a value to the stored type; nil if the types are equal
	progress func(n int64)
}

// readBytes is about how many bytes of values are gathered at a time, and the size of the buffer on
// standard input.
const readBytes = 1 << 20

// from implements [edit.Values]: it yields the values of the records from number first on. Values
// are gathered in blocks of about readBytes, at most 65536 records, so that reading costs few calls
// and little memory.
func (v *values) from(first int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := v.len()
		step := max(1, min(1<<16, readBytes/v.column.RecordBytes()))
		var b batch
		for at := int(first); at < n; at += step {
			end := min(n, at+step)
			if err := b.read(v, at, end); err != nil {
				yield(nil, err)
				return
			}
			for i := at; i < end; i++ {
				if !yield(v.value(&b, i, i-at)) {
					return
				}
			}
			v.progress(int64(end - at))
		}
	}
}

// len returns the number of values, which is the number of the dataset's records.
func (v *values) len() int {
	if v.order != nil {
		return len(v.order)
	}
	return v.src.Len()
}

// value returns the bytes of record i, which is entry k of the batch.
func (v *values) value(b *batch, i, k int) ([]byte, error) {
	if v.order != nil && v.order[i] < 0 {
		return v.missing(int64(i))
	}
	value := b.Value(k)
	if v.change == nil {
		return value, nil
	}
	changed, err := v.change(value)
	if err != nil {
		return nil, fmt.Errorf("%s: record %d: %w", v.src.path, b.indices[k], err)
	}
	return changed, nil
}

// batch holds the values of some records in memory, and the row in src of each.
type batch struct {
	block.Block
	indices []int
}

// read reads the values for records [from, to) of the dataset. A record without a row reads row 0
// instead, so that entry k of the batch is always record from+k; value then replaces the bytes.
func (b *batch) read(v *values, from, to int) (err error) {
	b.indices = b.indices[:0]
	for i := from; i < to; i++ {
		k := i
		if v.order != nil {
			k = max(0, v.order[i])
		}
		b.indices = append(b.indices, k)
	}
	return b.gather(v.ctx, v.src, v.column.Field)
}

// gather reads field f of the rows b.indices from src.
func (b *batch) gather(ctx context.Context, src *table, f store.Field) error {
	if err := b.Read(ctx, src.Source, f.Spec, b.indices); err != nil {
		return fmt.Errorf("%s: %w", src.path, err)
	}
	return nil
}

// stream writes a column from a .npy file on standard input, whose producer may take hours. Values
// are journaled: after an interruption, --resume tells the producer on standard output at which
// record to go on, and reads a .npy file whose header again has the whole shape but whose data
// begin at that record.
func (f *putFlags) stream(cmd *cobra.Command, ds *datasetarg.Generations, name string, old *store.Manifest,
	records int64, opts edit.Options) (*store.Manifest, error) {
	in := bufio.NewReaderSize(cmd.InOrStdin(), readBytes)
	opts.Journal = &store.Journal{Resume: f.resume}
	begun := func(first int64) error {
		if !f.resume {
			return nil
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "{\"first\": %d}\n", first)
		return err
	}
	h, err := npy.Read(in)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	switch {
	case len(h.Shape) == 0 || h.Fortran || h.BigEndian:
		return nil,
			errors.New("standard input: an array in C order and little endian is needed, whose first axis is that " +
				"of the records")
	}
	shape := make([]int, len(h.Shape)-1)
	for i, n := range h.Shape[1:] {
		shape[i] = int(n)
	}
	field := store.NewField(name, h.DType, shape...)
	if records != h.Shape[0] {
		return nil, fmt.Errorf("standard input: an array of %d rows, and %s has %d records", h.Shape[0], ds.Path, records)
	}
	v, size := new(values), field.RecordBytes()
	if i := old.Schema().Index(name); f.replaces && i >= 0 {
		if field, err = f.like(v, old.Fields[i], field); err != nil {
			return nil, err
		}
	}
	rows := func(first int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			if err := begun(first); err != nil {
				yield(nil, err)
				return
			}
			read := make([]byte, size)
			for at := first; ; at++ {
				_, err := io.ReadFull(in, read)
				if errors.Is(err, io.EOF) {
					return // values up to here are kept, for --resume
				}
				value, err := read, cmp.Or(err, context.Cause(cmd.Context()))
				if err == nil && v.change != nil {
					if value, err = v.change(read); err != nil {
						err = fmt.Errorf("standard input: record %d: %w", at, err)
					}
				}
				if !yield(value, err) {
					return
				}
			}
		}
	}
	return f.putColumn(cmd, ds, field, rows, opts)
}
