package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/cmd/internal/vfs"
)

// table is a source of rows: each column is a field.
type table struct {
	format  tableFormat
	path    string
	files   []string
	info    Info
	columns []tableColumn
	cells   map[string][]int // places of a column among the cells that columns take, one after the other
	width   int              // how many cells those are
	splits  fileSplits
}

// tableColumn is a column that becomes a field, or several that become one.
type tableColumn struct {
	name   string
	from   []string // the columns
	joined bool     // they are single numbers of an array
	typ    columnType
	field  Field
}

// tableFormat reads rows of a kind of file.
type tableFormat interface {
	// open begins a file.
	open(r io.Reader) (rowReader, error)
}

// rowReader reads the rows of one file.
type rowReader interface {
	// next returns the next row, io.EOF behind the last. A row of which only its own text is
	// wrong has that as its error; another error ends the file.
	next() (tableRow, error)
}

// tableRow is one row.
type tableRow interface {
	line() int64

	// each calls f for every cell there is. It may run beside other rows' each.
	each(f func(column string, c cell)) error
}

// openTable finds out types, classes and the number of rows in a pass over all files.
func openTable(ctx context.Context, kind, path string, format tableFormat, opts Options, wanted []Wanted) (Source, error) {
	files, err := filesOf(path, "*."+kind+"*")
	if err != nil {
		return nil, err
	}
	t := &table{format: format, path: path, files: files, splits: splitsOfFiles(files), info: Info{Kind: kind, Name: baseName(path), Unit: "rows"}}
	t.info.Splits = t.splits.names
	s, err := t.scan(ctx, opts.Seen, wanted)
	if err == nil {
		err = t.decide(s, wanted)
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return t, nil
}

// Info implements Source.
func (t *table) Info() Info { return t.info }

// Close implements Source.
func (t *table) Close() error { return nil }

// rows yields the rows of all files.
func (t *table) rows() iter.Seq2[tableRow, error] {
	return func(yield func(tableRow, error) bool) {
		for _, name := range t.files {
			more, err := t.fileRows(name, yield)
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", filepath.Base(name), withoutPath(err)))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

func (t *table) fileRows(name string, yield func(tableRow, error) bool) (more bool, err error) {
	r, err := openStream(name)
	if err != nil {
		return false, err
	}
	defer r.Close()
	rows, err := t.format.open(r)
	if err != nil {
		return false, err
	}
	for {
		row, err := rows.next()
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return false, err
		case !yield(placedRow{row, name}, nil):
			return false, nil
		}
	}
}

// placedRow is a row that knows its file.
type placedRow struct {
	tableRow
	file string
}

// Samples implements Source.
func (t *table) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for row, err := range t.rows() {
			if err != nil {
				yield(Sample{}, fmt.Errorf("source %s: %w", t.path, err))
				return
			}
			r := row.(placedRow)
			if !yield(Sample{Name: t.name(r), Split: t.splits.of[r.file], Data: rowData{t, r}}, nil) {
				return
			}
		}
	}
}

func (t *table) name(r placedRow) string {
	if len(t.files) == 1 {
		return fmt.Sprintf("line %d", r.line())
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(r.file), r.line())
}

// rowData is the Data of a row.
type rowData struct {
	table *table
	row   placedRow
}

// Read implements Data.
func (d rowData) Read(v *Values) error {
	cells := make([]cell, d.table.width)
	err := d.row.each(func(column string, c cell) {
		for _, i := range d.table.cells[column] {
			cells[i] = c
		}
	})
	if err != nil {
		return err
	}
	dir := filepath.Dir(d.row.file)
	for i, c := range d.table.columns {
		if err := c.put(v, i, cells[:len(c.from)], dir); err != nil {
			return err
		}
		cells = cells[len(c.from):]
	}
	return nil
}

// put makes the cells of a column the value of a field; a path is relative to dir.
func (c tableColumn) put(v *Values, field int, cells []cell, dir string) error {
	if c.joined {
		return c.putJoined(v, field, cells)
	}
	if err := c.typ.put(v, field, cells[0], dir); err != nil {
		return fmt.Errorf("column %s: %w", c.name, err)
	}
	return nil
}

// putFile makes a file's bytes the value of a field.
func putFile(v *Values, field int, path, dir string) error {
	if strings.Contains(path, "://") {
		return fmt.Errorf("%w: %q is a URL; download the files first", ErrValue, clip(path))
	}
	given := filepath.FromSlash(path)
	path = given
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	b, err := file(path).read(v.Buffer(field))
	v.Keep(field, b)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("file %s: %w", filepath.ToSlash(path), err)
	if _, elsewhere := vfs.Stat(given); elsewhere == nil && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; paths are relative to the folder of the table, not to the working folder", err)
	}
	return err
}
