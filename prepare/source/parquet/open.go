package parquet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// Open opens a file, a glob, or a folder of Parquet files, or the data of a LeRobot dataset. It reads footers, and
// values only if the schema does not decide the fields. With opts.Places the source is Indexed, if rows have images
// or other large values.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	hint := ""
	names, err := source.FilesIn(root, path, "*.parquet")
	if err != nil {
		// LeRobot has its Parquet files two folders down, where FilesIn does not look.
		if names, hint = source.LeRobot(root, path); names == nil {
			return nil, err
		}
	}
	s := &reader{root: root, path: path, names: names, splits: source.SplitsOfFiles(names),
		info: source.Info{Kind: "parquet", Name: source.BaseName(path), Unit: "rows"}}
	s.info.Splits = s.splits.Names
	if hint != "" {
		s.info.Hints = append(s.info.Hints, hint)
	}
	err = guardParquet(func() error { return s.open(ctx, names, opts, selection) })
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	if !opts.Places {
		return s, nil
	}
	x, err := newIndexed(s)
	switch {
	case err != nil:
		s.Close()
		return nil, fmt.Errorf("source %s: %w", path, err)
	case x == nil:
		return s, nil
	}
	return x, nil
}

// open opens the files, chooses columns by the first file's schema, and scans values only for properties that the
// schema does not tell: classes of texts, lengths of lists, and whether bytes are images.
func (s *reader) open(ctx context.Context, names []string, opts source.Options, selection []column.Selection) error {
	for _, name := range names {
		if err := s.add(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
		}
	}
	if s.info.Count == 0 {
		return errors.New("holds no rows")
	}
	columns, err := columnsOf(s.parts[0].File)
	if err != nil {
		return err
	}
	if s.columns, err = selectParquet(columns, selection); err != nil {
		return err
	}
	if err := s.agree(len(selection) > 0); err != nil {
		return err
	}
	if err := s.look(opts); err != nil {
		return err
	}
	if err := s.scan(ctx, opts.Seen); err != nil {
		return err
	}
	if err := s.decide(); err != nil {
		return err
	}
	for i, c := range s.columns {
		for _, leaf := range c.leaves() {
			leaf.missing = opts.Missing
		}
		if s.info.Fields = append(s.info.Fields, c.field); c.path {
			s.paths = append(s.paths, column.PathField{At: i, Several: c.field.Content == tensor.Images})
		}
		// Distinct wants a selection for each field, also if the user named none.
		if len(selection) <= i {
			selection = append(selection, column.Selection{Column: c.name})
		}
	}
	return column.Distinct(selection, source.FieldNames(s.info.Fields))
}

// agree finds the leaves of the first file, whose schema decides the fields, by path in every file. A column that some
// file lacks, or has with another type, is an error, unless the user has named others.
func (s *reader) agree(named bool) error {
	var first error
	bad, schema, ofFirst := make(map[string]bool), s.parts[0].Schema(), extensionsOf(s.parts[0].File)
	paths, same := make([][]string, len(schema.Columns())), make([]int, len(schema.Columns())) // by leaf
	for _, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		paths[leaf.ColumnIndex], same[leaf.ColumnIndex] = path, leaf.ColumnIndex
	}
	text := schema.String()
	for i, p := range s.parts {
		differs := func(column, how string) {
			if bad[column] = true; first == nil {
				first = fmt.Errorf("%s: column %q %s %s", filepath.ToSlash(s.names[i]), column, how, filepath.ToSlash(s.names[0]))
			}
		}
		extensions := extensionsOf(p.File)
		if p.Schema().String() == text && reflect.DeepEqual(extensions, ofFirst) { // as almost all files of a folder have
			p.leaves = same
			s.noteRuns(p)
			continue
		}
		p.leaves = slices.Repeat([]int{-1}, len(paths))
		for k, path := range paths {
			_, of := leafOf(schema, path)
			if own, typ := leafOf(p.Schema(), path); typ == of {
				p.leaves[k] = own.ColumnIndex
			}
		}
		for _, c := range s.columns {
			for _, leaf := range c.leaves() {
				_, typ := leafOf(p.Schema(), paths[leaf.leaf.ColumnIndex])
				switch {
				case typ == "":
					differs(leaf.name, "is missing, and is in")
				case p.leaves[leaf.leaf.ColumnIndex] < 0 || !reflect.DeepEqual(extensions[leaf.name], ofFirst[leaf.name]):
					differs(leaf.name, "has another type than in")
				}
			}
		}
		for _, path := range p.Schema().Columns() {
			if _, typ := leafOf(schema, path); typ == "" && !named {
				differs(parquetName(path), "is not in")
			}
		}
		s.noteRuns(p)
	}
	if first == nil {
		return nil
	}
	var good []string
	for _, c := range s.columns {
		if !bad[c.name] {
			good = append(good, c.name)
		}
	}
	return column.Undecided([]error{first}, good, named)
}

// leafOf returns a leaf by its path, and the text of its type and of the lists and structs around it; "" without such a
// leaf.
func leafOf(s *parquet.Schema, path []string) (leaf parquet.LeafColumn, typ string) {
	leaf, ok := s.Lookup(path...)
	if !ok {
		return leaf, ""
	}
	var text strings.Builder
	_ = parquet.PrintSchema(&text, "", leaf.Node) // a Builder takes all
	typ, _, _ = strings.Cut(text.String(), " = ") // without the number that some writers give to a column by its place
	return leaf, fmt.Sprint(leaf.MaxRepetitionLevel, leaf.MaxDefinitionLevel, itemLevel(s, path), typ)
}

// scan reads the columns whose class names or list lengths are not known yet, each on its own: the other columns of
// the file may be images.
func (s *reader) scan(ctx context.Context, seen func(n int64)) error {
	for _, c := range s.columns {
		scan := newColumnScan(c)
		if scan == nil {
			continue
		}
		for i, p := range s.parts {
			if err := scan.file(ctx, p); err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(s.files[i].Name()), err)
			}
			if s.info.Count >= source.QuickScan {
				seen(p.NumRows())
			}
		}
		// Progress counts rows and not values.
		seen = func(int64) {} // the other columns are of the same rows
		if err := scan.finish(); err != nil {
			return err
		}
	}
	return nil
}

// decide chooses the fields. The error for columns that cannot become fields says how to select the other columns.
func (s *reader) decide() error {
	var errs []error
	var good []string
	for _, c := range s.columns {
		err := c.decide()
		if s.inRuns(c) {
			err = errRuns
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("column %s: %w", c.name, err))
		} else {
			good = append(good, c.name)
		}
	}
	return column.Undecided(errs, good, s.columns[0].selection.Column != "")
}

// inRuns reports whether a column has booleans that are encoded in runs.
func (s *reader) inRuns(c *leafColumn) bool {
	if c.parts == nil {
		return s.runs[c.leaf.ColumnIndex]
	}
	return slices.ContainsFunc(c.parts, s.inRuns)
}

// add opens a file. The checks before and after OpenFile of parquet-go keep
// a corrupt footer from using up the memory. Page index and bloom filters are skipped: they are large, and indexed
// reads its own part of the index.
func (s *reader) add(ctx context.Context, name string) error {
	f, err := source.OpenUntil(ctx, s.root, name)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkParquetEnds(f, info.Size()); err != nil {
		return err
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return err
	}
	if err := checkParquetChunks(p, info.Size()); err != nil {
		return err
	}
	s.parts = append(s.parts, &part{File: p})
	s.info.Count += p.NumRows()
	return nil
}

// look reads the first rows to find out what bytes and nested lists are. With opts.Places it reads them only
// if necessary, as a row of images in a bucket is expensive.
func (s *reader) look(opts source.Options) error {
	if opts.Places && !slices.ContainsFunc(s.columns, (*leafColumn).unclear) {
		return nil
	}
	n := 0
	for row, err := range s.rows() {
		if err != nil {
			return err
		}
		for _, c := range s.columns {
			if c.parts == nil {
				c.look(c.values(row), opts.IsImage)
			}
		}
		if n++; n == looked {
			break
		}
	}
	return nil
}
