package kinds

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// partitions is a source of files in folders that name column values, such as kind=a. The columns of the folders
// follow the columns of the files. All rows of a file have the same values for them.
//
//	data/kind=cat/year=2020/0.parquet   its rows have the values cat and 2020 in the columns kind and year
type partitions struct {
	source.Source
	info  source.Info
	first int                  // fields of the files
	of    map[string]partition // values by path of the file
}

// partition is the values that the folders of a file give to its rows.
type partition struct {
	values source.Tuple
	err    error // why a value does not fit its field; an error of each row
}

// openPartitions opens a source of a kind whose files are in partitions. A column in both the files and the folders
// is an error: which of the two values counts differs between programs.
func openPartitions(ctx context.Context, root *vfs.Root, path, kind string, files []string, opts source.Options,
	selection []column.Selection) (source.Source, error) {
	p := &partitions{of: make(map[string]partition)}
	fields, inFiles, err := p.find(root, path, files, opts.Missing, selection)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	// The kind lists the files of the folder itself, in the same order.
	if p.Source, err = openers[kind](ctx, root, path, opts, inFiles); err != nil {
		return nil, err
	}
	p.info = p.Source.Info()
	p.first = len(p.info.Fields)
	for _, f := range p.info.Fields {
		for _, g := range fields {
			// A column in the files and in a folder's name could have two values in one row.
			if f.Name == g.Name {
				glob := filepath.Join(path, "*", "*"+filepath.Ext(files[0]))
				return nil, errors.Join(fmt.Errorf("source %s: the files have a column %q, too; a glob reads the files without "+
					"the columns of folders: '%s'", path, g.Name, glob), p.Source.Close())
			}
		}
	}
	p.info.Fields = append(slices.Clone(p.info.Fields), fields...)
	if indexed, ok := p.Source.(source.Indexed); ok {
		return &indexedPartitions{p, indexed}, nil
	}
	return p, nil
}

// find reads the columns and values of the folders, and returns the selected fields among these columns, and
// the rest of the selection, which is for the files. All files must be in folders of the same columns.
func (p *partitions) find(root *vfs.Root, path string, files []string, missing string, selection []column.Selection) (
	fields []source.Field, inFiles []column.Selection, err error) {
	var names []string
	cells := make([][]column.Cell, len(files)) // by file
	for i, file := range files {
		list, err := source.PartitionsOf(path, file)
		if err != nil {
			return nil, nil, err
		}
		if info, err := root.Stat(file); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, source.WithoutPath(err))
		} else if info.IsDir() {
			return nil, nil, fmt.Errorf("%s is a link to a folder that it is in; remove it", file)
		}
		var columns []string
		for _, part := range list {
			// Quoted, as the name of a folder is text even if it looks like a number; partitionType decides.
			c := column.Cell{Text: part.Value, Quoted: true}
			if part.Value == source.NullPartition {
				c = column.Cell{}
			}
			columns, cells[i] = append(columns, part.Column), append(cells[i], c)
		}
		if i == 0 {
			names = columns
		} else if !slices.Equal(columns, names) {
			return nil, nil, fmt.Errorf("the folders of %s name the columns %s, and the folders of %s name %s",
				files[0],
				strings.Join(names, ", "), file, strings.Join(columns, ", "))
		}
	}
	wanted := selection
	if len(selection) == 0 {
		for _, name := range names {
			wanted = append(wanted, column.Selection{Column: name})
		}
	}
	var types []column.Type
	var places []int // of the columns that are wanted
	for _, w := range wanted {
		k := slices.Index(names, w.Column)
		if k < 0 {
			inFiles = append(inFiles, w)
			continue
		}
		t, err := partitionType(w, cells, k)
		if err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", w.Column, err)
		}
		f := t.FieldOf(w.FieldName())
		if w.Content.Name != "" || f.Ragged && f.Content != tensor.Text || f.Image() {
			return nil, nil, fmt.Errorf("--fields %s: the name of a folder is a number, a label or text", w)
		}
		t.SetMissing(missing, f)
		f.Origin = fmt.Sprintf("folders %s=... as %v", w.Column, t)
		fields, types, places = append(fields, f), append(types, t), append(places, k)
	}
	if len(selection) > 0 && inFiles == nil {
		return nil, nil, fmt.Errorf("--fields has columns of folders alone (%s); name a column of the files, too",
			strings.Join(names, ", "))
	}
	values := source.NewValues(len(fields))
	for i, file := range files {
		var part partition
		for k, t := range types {
			if err := t.Put(values, k, cells[i][places[k]], source.File{}); err != nil && part.err == nil {
				part.err = fmt.Errorf("folder of column %s: %w", names[places[k]], err)
			}
			part.values = append(part.values, slices.Clone(values.Get(k)))
		}
		p.of[file] = part
	}
	return fields, inFiles, nil
}

// partitionType returns the type of the k-th column: integers if all values are, a label by the name of the column,
// otherwise text. Integers are written in their usual form, as pyarrow reads 01 as 1, too.
func partitionType(w column.Selection, cells [][]column.Cell, k int) (column.Type, error) {
	whole, classes := true, make(map[string]bool)
	for _, row := range cells {
		if _, err := strconv.ParseInt(row[k].Text, 10, 64); err != nil && !row[k].Missing() {
			whole = false
		}
	}
	var guess column.Guess
	for i := range cells {
		c := &cells[i][k]
		if n, err := strconv.ParseInt(c.Text, 10, 64); whole && err == nil {
			*c = column.Cell{Text: strconv.FormatInt(n, 10)}
		}
		if guess.Add(*c); !c.Missing() {
			classes[c.Text] = true
		}
	}
	t := column.Type{Kind: column.Text}
	if w.CellType() != "" {
		t, _ = column.ParseType(w.CellType()) // ParseFields has checked it
	} else if column.LabelName(w.Column) {
		t, _ = column.ParseType("label")
	} else if whole {
		t = column.Type{DType: tensor.Int64}
	}
	return t, t.SetClasses(&guess, classes)
}

// Info implements source.Source.
func (p *partitions) Info() source.Info { return p.info }

// Samples implements source.Source.
func (p *partitions) Samples() iter.Seq2[source.Sample, error] { return p.From(0) }

// From implements source.Seekable.
func (p *partitions) From(n int64) iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for s, err := range source.From(p.Source, n) {
			if !yield(p.with(s), err) {
				return
			}
		}
	}
}

// with adds the values of its partition to a sample.
func (p *partitions) with(s source.Sample) source.Sample {
	s.Data = partitioned{s.Data, p.first, p.of[s.File]}
	return s
}

// partitioned is the Data of a row with the values of its partition.
type partitioned struct {
	source.Data
	first int // number of fields from the files
	part  partition
}

// Read implements source.Data.
func (d partitioned) Read(v *source.Values) error {
	// The values of the partition are set also for a bad row, so that its other fields are known.
	err := d.Data.Read(v)
	for i, value := range d.part.values {
		v.Borrow(d.first+i, value)
	}
	if err != nil {
		return err
	}
	return d.part.err
}

// Files implements source.Naming for tables that name files. The values of partitions are not part of the result,
// as they follow from the path of the table.
func (d partitioned) Files(v *source.Values) (files []string, rest []byte, err error) {
	if n, ok := d.Data.(source.Naming); ok {
		return n.Files(v)
	}
	return nil, nil, nil
}

// Blocks implements source.Blocked.
func (p *partitions) Blocks() iter.Seq2[source.Block, error] {
	s, ok := p.Source.(source.Blocked)
	if !ok {
		return nil
	}
	blocks := s.Blocks()
	for _, part := range p.of {
		if part.err != nil {
			return nil // its rows are bad, and read one by one
		}
	}
	if blocks == nil {
		return nil
	}
	return func(yield func(source.Block, error) bool) {
		for b, err := range blocks {
			if !yield(partitionedBlock{b, p}, err) {
				return
			}
		}
	}
}

// partitionedBlock is a block of rows of one file, with the values of its partition.
type partitionedBlock struct {
	source.Block
	source *partitions
}

// Read implements source.Block.
func (b partitionedBlock) Read(rows *source.Rows) error {
	if err := b.Block.Read(rows); err != nil {
		return err
	}
	part, first := b.source.of[rows.File], b.source.first
	for i := range rows.Odd {
		// An odd row is read on its own, and needs the values of the partition there.
		rows.Odd[i].Data = partitioned{rows.Odd[i].Data, first, part}
	}
	for k, value := range part.values {
		text := b.source.info.Fields[first+k].Content == tensor.Text
		for range rows.N - len(rows.Odd) {
			rows.Values[first+k] = append(rows.Values[first+k], value...)
			if text {
				rows.Ends[first+k] = append(rows.Ends[first+k], len(rows.Values[first+k]))
			}
		}
	}
	return nil
}

// indexedPartitions is partitions with random access.
type indexedPartitions struct {
	*partitions
	indexed source.Indexed
}

// Sample implements source.Indexed.
func (p *indexedPartitions) Sample(i int64) (source.Sample, error) {
	s, err := p.indexed.Sample(i)
	return p.with(s), err
}

// partitionFiles returns the files in the partitions of a folder, nil for any other source. A folder that has files
// of the kind itself is read without partitions.
func partitionFiles(root *vfs.Root, path, kind string) []string {
	files, err := source.Files(path)
	if err != nil || len(files) != 1 || !slices.Contains(source.Partitioned, kind) {
		return nil // opening reports an error
	}
	if info, err := root.Stat(files[0]); err != nil || !info.IsDir() || len(root.Glob(files[0], "*."+kind+"*")) > 0 {
		return nil
	}
	return source.PartitionFiles(root, files[0])
}
