package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"strconv"
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
	order   []string         // columns as they first come
	cells   map[string][]int // places of a column among the cells that columns take, one after the other
	ordered [][]int          // the same by place in order
	width   int              // how many cells those are
	splits  fileSplits
	outside bool // see fence
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

	// each calls f for every cell of a row that there is: the i-th of the row. It may run
	// beside other rows' each.
	each(row *tableRow, f func(i int, column string, c cell)) error
}

// rowReader reads the rows of one file.
type rowReader interface {
	// columns returns the names of the columns if the file has them once, for all rows.
	columns() []string

	// next makes row the next one, io.EOF behind the last. A row of which only its own text is
	// wrong has that as its error; another error ends the file.
	next(row *tableRow) error
}

// tableFile is a file of a table.
type tableFile struct {
	table  *table
	name   string
	header []string // of CSV
}

// tableRow is one row, as text. It is the Data of its sample.
type tableRow struct {
	file   *tableFile
	at     int64 // line
	text   string
	comma  byte     // of CSV
	record []string // of CSV, where the text had to be read already
	err    error    // why it is a bad sample
}

// openTable finds out types, classes and the number of rows in a pass over all files.
func openTable(ctx context.Context, kind, path string, format tableFormat, opts Options, wanted []Wanted) (Source, error) {
	files, err := filesOf(path, "*."+kind+"*")
	if err != nil {
		return nil, err
	}
	t := &table{format: format, path: path, files: files, splits: splitsOfFiles(files), outside: opts.Outside, info: Info{Kind: kind, Name: baseName(path), Unit: "rows"}}
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
func (t *table) rows() iter.Seq2[*tableRow, error] {
	return func(yield func(*tableRow, error) bool) {
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

// rowSlab is how many rows are allocated at once.
const rowSlab = 256

func (t *table) fileRows(name string, yield func(*tableRow, error) bool) (more bool, err error) {
	r, err := openStream(name)
	if err != nil {
		return false, err
	}
	defer r.Close()
	rows, err := t.format.open(r)
	if err != nil {
		return false, err
	}
	file := &tableFile{t, name, rows.columns()}
	var slab []tableRow
	for {
		if len(slab) == 0 {
			slab = make([]tableRow, rowSlab)
		}
		row := &slab[0]
		slab = slab[1:]
		err := rows.next(row)
		row.file = file
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return false, err
		case !yield(row, nil):
			return false, nil
		}
	}
}

// Samples implements Source.
func (t *table) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for row, err := range t.rows() {
			if err != nil {
				yield(Sample{}, fmt.Errorf("source %s: %w", t.path, err))
				return
			}
			if !yield(Sample{Name: t.name(row), Split: t.splits.of[row.file.name], Data: row}, nil) {
				return
			}
		}
	}
}

func (t *table) name(r *tableRow) string {
	if len(t.files) == 1 {
		return "line " + strconv.FormatInt(r.at, 10)
	}
	return filepath.ToSlash(r.file.name) + ":" + strconv.FormatInt(r.at, 10)
}

// Read implements Data.
func (r *tableRow) Read(v *Values) error {
	t := r.file.table
	cells := v.cells(t.width)
	err := t.format.each(r, func(i int, column string, c cell) {
		places := []int(nil)
		if i < len(t.order) && t.order[i] == column {
			places = t.ordered[i]
		} else {
			places = t.cells[column]
		}
		for _, k := range places {
			cells[k] = c
		}
	})
	if err != nil {
		return err
	}
	dir := fence{filepath.Dir(r.file.name), t.outside}
	for i, c := range t.columns {
		if err := c.put(v, i, cells[:len(c.from)], dir); err != nil {
			return err
		}
		cells = cells[len(c.from):]
	}
	return nil
}

// put makes the cells of a column the value of a field; a path is relative to dir, and leads to a file in it.
func (c tableColumn) put(v *Values, field int, cells []cell, dir fence) error {
	if c.joined {
		return c.putJoined(v, field, cells)
	}
	if err := c.typ.put(v, field, cells[0], dir); err != nil {
		return fmt.Errorf("column %s: %w", c.name, err)
	}
	return nil
}

// putFile makes a file's bytes the value of a field.
func putFile(v *Values, field int, path string, dir fence) error {
	if strings.Contains(path, "://") {
		return fmt.Errorf("%w: %q is a URL; download the files first", ErrValue, clip(path))
	}
	given := filepath.FromSlash(path)
	path = given
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir.dir, path)
	}
	b, err := v.Buffer(field)[:0], dir.check(path)
	if err == nil {
		b, err = file(path).read(b)
	}
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
