package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// table is a source of rows. Its columns become fields.
type table struct {
	ctx     context.Context
	format  tableFormat
	path    string
	files   []string
	info    source.Info
	columns []tableColumn
	order   []string         // columns in the order of their first occurrence
	cells   map[string][]int // by column: the positions of its cell among the cells of all fields
	ordered [][]int          // the same by position in order
	keys    []string         // the names in order as JSON writes them; "" for a name with escapes
	width   int              // number of cells that all fields take
	unseen  bool             // without a header, only the first row was examined for columns
	splits  source.FileSplits
	root    *vfs.Root
	held    []*heldBlock
	whole   bool // held has all blocks
}

// tableColumn is one field, made of a column or of several columns.
type tableColumn struct {
	name   string
	from   []string // the columns
	concat bool     // the columns are the numbers of an array
	typ    column.Type
	note   string // why the column has its type, for messages
	field  source.Field
}

// tableFormat parses the rows of a kind of file. Its two implementations are csvFormat and jsonlFormat. A format
// has no state: what a file needs is in its rowReader.
type tableFormat interface {
	// open begins a file, and reads its header if the format has a header.
	open(r io.Reader) (rowReader, error)

	// each calls f with each cell of a row; i is the position of the cell. It may run concurrently for different
	// rows.
	each(row *tableRow, f func(i int, column string, c column.Cell)) error

	// typed parses the first line of text as a row with the usual columns, and returns its length in bytes. It
	// returns 0 if the line is no such row, or if only each can decide.
	typed(r *typedReader, file *tableFile, text string) int
}

// rowReader reads the rows of one file.
type rowReader interface {
	// columns returns the names of the columns if the file has a header, otherwise nil.
	columns() []string

	// text returns the reader of the lines that were not read yet.
	text() *lineReader

	// separator returns the character between the cells of a row, if rows consist of cells and separators only, and
	// numbers do not contain the character; otherwise 0.
	separator() byte

	// whole returns how many bytes of complete lines are complete rows that can be parsed on their own, and whether
	// each of these lines is a row. It returns 0 if only next can read them.
	whole(lines string) (end int, plain bool)

	// row parses a line into row; at is the number of the line in the file. It returns false if the line is no row.
	// It may run concurrently with all calls.
	row(line string, at int64, row *tableRow) bool

	// next sets row to the next row; io.EOF after the last row. If only the row is invalid, the error is in the
	// row; any returned error ends the file.
	next(row *tableRow) error
}

// tableFile is an open file of a table.
type tableFile struct {
	table  *table
	name   string
	prefix string   // what the names of its rows begin with
	header []string // names of the columns of CSV; nil for JSON Lines
	rows   rowReader
}

// tableRow is a row as text. It is the Data of its sample, so that parsing is done by the worker.
type tableRow struct {
	file   *tableFile
	at     int64 // number of the line, from 1 on
	text   string
	comma  byte     // the separator of CSV
	record []string // the cells, if CSV with quotes was parsed already
	err    error    // why the row is a bad sample
}

// openTable opens a table. It finds types, classes and the number of rows in a pass over all files.
func openTable(ctx context.Context, root *vfs.Root, kind, path string, format tableFormat, opts source.Options,
	selection []column.Selection) (source.Source, error) {
	files, err := source.FilesIn(root, path, "*."+strings.TrimSuffix(kind, "l")+"*")
	if err != nil {
		return nil, err
	}
	t := &table{ctx: ctx, format: format, path: path, files: files, splits: source.SplitsOfFiles(files),
		root: root, info: source.Info{Kind: kind, Name: source.BaseName(path), Unit: "rows"}}
	t.info.Splits = t.splits.Names
	err = t.find(ctx, opts, selection)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return t, nil
}

// Info implements Source.
func (t *table) Info() source.Info { return t.info }

// Close implements Source.
func (t *table) Close() error {
	t.held = nil
	return t.root.Close()
}

// rows yields the rows of all files.
func (t *table) rows() iter.Seq2[*tableRow, error] {
	return func(yield func(*tableRow, error) bool) {
		err := t.eachFile(func(file *tableFile) error {
			var block []tableRow
			for {
				if len(block) == 0 {
					block = make([]tableRow, rowBlock)
				}
				row := &block[0]
				block = block[1:]
				err := file.rows.next(row)
				row.file = file
				if err == nil && !yield(row, nil) {
					err = errStop
				}
				if err != nil {
					return err
				}
			}
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// rowBlock is the number of rows that are allocated together. Rows outlive the iteration, as samples wait for
// workers.
const rowBlock = 256

// errStop ends eachFile without an error.
var errStop = errors.New("stop")

// eachFile opens the files one after the other and calls f with each. f returns io.EOF at the end of a file; any
// other error ends eachFile.
func (t *table) eachFile(f func(*tableFile) error) error {
	for _, name := range t.files {
		switch err := t.withFile(name, f); {
		case err == errStop:
			return nil
		case err != nil && err != io.EOF:
			return fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
		}
	}
	return nil
}

func (t *table) withFile(name string, f func(*tableFile) error) error {
	r, err := source.OpenStream(t.ctx, t.root, name)
	if err != nil {
		return err
	}
	defer r.Close()
	rows, err := t.format.open(r)
	if err != nil {
		return err
	}
	return f(t.file(name, rows))
}

// Samples implements Source.
func (t *table) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for row, err := range t.rows() {
			if err != nil {
				yield(source.Sample{}, fmt.Errorf("source %s: %w", t.path, err))
				return
			}
			sample := source.Sample{Name: t.name(row), Split: t.splits.Of[row.file.name], File: row.file.name, Data: row}
			if !yield(sample, nil) {
				return
			}
		}
	}
}

func (t *table) file(name string, rows rowReader) *tableFile {
	prefix := name
	if len(t.files) == 1 {
		prefix = filepath.Base(name)
	}
	return &tableFile{table: t, name: name, prefix: filepath.ToSlash(prefix) + ":", header: rows.columns(), rows: rows}
}

func (t *table) name(r *tableRow) string { return r.file.prefix + strconv.FormatInt(r.at, 10) }

// places returns the positions, among the cells of all fields, of cell i of a row, which is in the named column. It
// is empty for a known column that no field uses, and nil for an unknown column.
func (t *table) places(i int, column string) []int {
	if i < len(t.order) && t.order[i] == column {
		return t.ordered[i]
	}
	return t.cells[column]
}

// setter returns a function that puts each cell of a row at its positions in cells. It sets late to an error if the
// row has a column that was not in the first pass.
func (t *table) setter(cells []column.Cell, late *error) func(i int, name string, c column.Cell) {
	return func(i int, name string, c column.Cell) {
		places := t.places(i, name)
		if places == nil && *late == nil {
			*late = t.late(name)
		}
		for _, k := range places {
			cells[k] = c
		}
	}
}

// late returns an error for a column that belongs to a field of several columns, but that the first row did not have:
// the field's shape would change.
func (t *table) late(name string) error {
	if !t.unseen {
		return nil
	}
	for _, c := range t.columns {
		if names, _ := column.Matching(c.name, []string{name}); c.concat && names != nil {
			return source.ValueError("column %q of %s was not in the first row", name, c.name)
		}
	}
	return nil
}

// Read implements Data.
func (r *tableRow) Read(v *source.Values) error {
	t := r.file.table
	cells, err := r.cells(v)
	if err != nil {
		return err
	}
	dir := source.File{Root: t.root, Path: filepath.Dir(r.file.name)}
	for i, c := range t.columns {
		if err := c.put(v, i, cells[:len(c.from)], dir); err != nil {
			return err
		}
		cells = cells[len(c.from):]
	}
	return nil
}

// Files implements source.Naming. The files are the images that the row names.
func (r *tableRow) Files(v *source.Values) (files []string, rest []byte, err error) {
	cells, err := r.cells(v)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range r.file.table.columns {
		if list, is := c.typ.ListPaths(cells[0], filepath.Dir(r.file.name)); is && !c.concat {
			files = append(files, list...)
		} else {
			for _, cell := range cells[:len(c.from)] {
				rest = fmt.Appendf(rest, "%v %q\n", cell.Missing(), cell.Text)
			}
		}
		cells = cells[len(c.from):]
	}
	return files, rest, nil
}

// cells parses the row and returns the cells of all fields, one field after the other. They are valid until the
// next call with v.
func (r *tableRow) cells(v *source.Values) ([]column.Cell, error) {
	t := r.file.table
	cells := scratchCells(v, t.width)
	var late error
	err := t.format.each(r, t.setter(cells, &late))
	return cells, cmp.Or(err, late)
}

// scratchCells returns n empty cells in memory of v, valid until the next call.
func scratchCells(v *source.Values, n int) []column.Cell {
	row, ok := v.Scratch.(*[]column.Cell)
	if !ok {
		row = new([]column.Cell)
		v.Scratch = row
	}
	*row = slices.Grow((*row)[:0], n)[:n]
	clear(*row)
	return *row
}

// put sets a field to the value of the column's cells. A path in a cell is relative to dir.
func (c tableColumn) put(v *source.Values, field int, cells []column.Cell, dir source.File) error {
	if c.concat {
		return c.putConcat(v, field, cells)
	}
	if err := c.typ.Put(v, field, cells[0], dir); err != nil {
		return fmt.Errorf("column %s: %w", c.name, err)
	}
	return nil
}
