package rows

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// rows is a source of files that consist of rows.
type rows struct {
	root    *vfs.Root
	path    string
	names   []string // of the files
	short   []string // by file: what the names of its rows begin with
	files   []File
	counts  []int64
	splits  source.FileSplits
	info    source.Info
	columns map[string]int     // by name: the columns that become fields
	targets [][]*target        // by column: a column may be selected several times
	paths   []column.PathField // fields whose values are paths of images until the files are read
}

// Open opens files of a format. If they do not describe their columns completely, it goes through all rows once, to
// find types, lengths, classes and the number of rows.
func Open(ctx context.Context, root *vfs.Root, path string, names []string, format Format, opts source.Options,
	selection []column.Selection) (source.Source, error) {
	s := &rows{root: root, path: path, names: names, splits: source.SplitsOfFiles(names),
		info: source.Info{Kind: format.Kind, Name: source.BaseName(path), Unit: format.Unit}}
	if format.Splits != nil {
		s.splits = *format.Splits
	}
	s.info.Splits = s.splits.Names
	s.shorten()
	if err := s.open(ctx, format, opts, selection); err != nil {
		return nil, fmt.Errorf("source %s: %w", path, errors.Join(err, s.Close()))
	}
	return s, nil
}

// shorten sets the prefixes of the names of rows: the base name of each file, or all paths if two files have
// one base name.
func (s *rows) shorten() {
	for _, n := range s.names {
		s.short = append(s.short, filepath.Base(n))
	}
	// Compact removes equal neighbors, so a shorter list means a name that occurs twice.
	sorted := slices.Sorted(slices.Values(s.short))
	if len(slices.Compact(sorted)) < len(s.short) {
		s.short = nil
		for _, n := range s.names {
			s.short = append(s.short, filepath.ToSlash(n))
		}
	}
}

// open opens all files, scans them, and decides the fields. All files must be scanned before a type is decided: the
// second file may have a longer list or another class.
func (s *rows) open(ctx context.Context, format Format, opts source.Options, selection []column.Selection) error {
	for i, name := range s.names {
		f, err := format.Open(ctx, s.root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", s.short[i], source.WithoutPath(err))
		}
		s.files = append(s.files, f)
	}
	scan, err := newScan(s.files, s.short, selection, opts)
	if err != nil {
		return err
	}
	if s.counts, err = scan.run(s.files, s.short); err != nil {
		return err
	}
	for _, n := range s.counts {
		s.info.Count += n
	}
	if s.info.Count == 0 {
		return errors.New("holds no " + format.Unit)
	}
	err = s.decide(scan, selection, format.Sorted)
	for _, list := range s.targets {
		for _, t := range list {
			t.missing = opts.Missing
		}
	}
	return err
}

// decide chooses the fields. The error for columns that cannot become fields says how to select the other columns.
func (s *rows) decide(scan *scan, selection []column.Selection, sorted bool) error {
	wanted := selection
	if len(wanted) == 0 {
		for _, c := range scan.columns {
			wanted = append(wanted, column.Selection{Column: c.Name})
		}
		if !scan.declared { // records have their values in any order
			slices.SortFunc(wanted, func(a, b column.Selection) int { return strings.Compare(a.Column, b.Column) })
		}
		if len(wanted) == 0 {
			return fmt.Errorf("the %s have no features", s.info.Unit)
		}
	}
	s.columns, s.targets = make(map[string]int), make([][]*target, len(scan.columns))
	var errs []error
	var good, names []string
	var targets []*target
	for _, w := range wanted {
		at, ok := scan.byName[w.Column]
		if !ok {
			return fmt.Errorf("--fields %s: there is no column %q%s", w, w.Column, suggest.Hint(w.Column, scan.order()))
		}
		t, err := newTarget(scan.columns[at], w)
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", w.Column, err))
			continue
		}
		good, names = append(good, w.Column), append(names, t.field.Name)
		targets = append(targets, t)
		s.columns[w.Column] = at
		s.targets[at] = append(s.targets[at], t)
	}
	if len(selection) == 0 && (sorted || !scan.declared) {
		source.SortImagesFirst(targets, func(t *target) source.Field { return t.field })
	}
	for at, t := range targets {
		t.at = at
		if s.info.Fields = append(s.info.Fields, t.field); t.path {
			s.paths = append(s.paths, column.PathField{At: at, Several: t.as == asItems})
		}
	}
	if err := column.Undecided(errs, good, len(selection) > 0); err != nil {
		return err
	}
	return column.Distinct(wanted, names)
}

// Info implements Source.
func (s *rows) Info() source.Info { return s.info }

// Close implements Source.
func (s *rows) Close() (err error) {
	defer func() { err = errors.Join(err, s.root.Close()) }()
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

// Files implements source.Filed.
func (s *rows) Files() (paths []string, samples []int64) { return s.names, s.counts }

// Samples implements Source.
func (s *rows) Samples() iter.Seq2[source.Sample, error] { return s.From(0) }

// From implements source.Seekable. Files before the sample are not read. A file with fewer rows than in the first
// pass is an error.
func (s *rows) From(n int64) iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		skip := n
		for i, f := range s.files {
			if skip >= s.counts[i] {
				skip -= s.counts[i]
				continue
			}
			at, split := skip, s.splits.Of[s.names[i]]
			skip = 0
			for row, err := range f.Rows(at) {
				if err != nil {
					yield(source.Sample{}, fmt.Errorf("source %s: %s:%d: %w", s.path, s.short[i], at, err))
					return
				}
				name := s.short[i] + ":" + strconv.FormatInt(at, 10)
				data := column.WithFiles(rowData{s, row}, s.paths, s.root, s.names[i])
				if !yield(source.Sample{Name: name, Split: split, File: s.names[i], Data: data}, nil) {
					return
				}
				at++
			}
			// Rows were counted by the first pass, and Info.Count must hold.
			if at < s.counts[i] {
				yield(source.Sample{}, fmt.Errorf("source %s: %s ends at row %d of %d", s.path, s.short[i], at, s.counts[i]))
				return
			}
		}
	}
}

// rowData is the Data of a row.
type rowData struct {
	rows *rows
	row  Row
}

// Read implements source.Data. Columns without a value in the row are null.
func (d rowData) Read(v *source.Values) error {
	r, ok := v.Scratch.(*reading)
	if !ok {
		r = new(reading)
		v.Scratch = r
	}
	r.rows, r.v, r.buf = d.rows, v, r.buf[:0]
	r.there = append(r.there[:0], make([]bool, len(d.rows.targets))...)
	if err := d.row.Each(&r.buf, r); err != nil {
		return err
	}
	for _, at := range d.rows.columns {
		// --missing decides about a feature that a record does not have, as about any null.
		if !r.there[at] {
			if err := r.Value(at, &Value{Null: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// reading is the Visitor that sets fields to the values of a row. It is the Scratch of a Values, and keeps its
// memory.
type reading struct {
	rows  *rows
	v     *source.Values
	buf   []byte
	there []bool // by column: the row has a value
}

// Column implements Visitor.
func (r *reading) Column(name []byte) int {
	if at, ok := r.rows.columns[string(name)]; ok {
		return at
	}
	return -1
}

// Value implements Visitor.
func (r *reading) Value(at int, x *Value) error {
	r.there[at] = true
	for _, t := range r.rows.targets[at] {
		if err := t.put(r.v, x); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}
