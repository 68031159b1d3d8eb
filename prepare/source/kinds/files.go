package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/dataset"
	"github.com/penstock/penstock/prepare/source/hdf5"
	"github.com/penstock/penstock/prepare/source/unit"
	"github.com/penstock/penstock/prepare/source/zarr"
)

// endings are the file name endings of units in a folder, by the kind of a file.
var endings = map[string][]string{"npz": {".npz"}, "npy": {".npy"}, "safetensors": {".safetensors"},
	"hdf5": {".h5", ".hdf5", ".hdf", ".nc", ".mat", ".h5ad"}, "zarr": {".zarr"}, rawKind: {""}}

// grouped is *hdf5.File or *zarr.File.
type grouped interface {
	unit.Grouped
	Unit(path string) (unit.Unit, error)
	io.Closer
}

// openGrouped has the functions that open files of groups, by kind.
var openGrouped = map[string]func(ctx context.Context, root *vfs.Root, path string) (grouped, error){
	"hdf5": func(ctx context.Context, root *vfs.Root, path string) (grouped, error) {
		return hdf5.Open(ctx, root, path)
	},
	"zarr": func(ctx context.Context, root *vfs.Root, path string) (grouped, error) {
		return zarr.OpenFile(ctx, root, path)
	},
}

// rawKind is the kind of files without a header, whose type Options.Records has.
const rawKind = "bin"

// KindOf returns the kind of a source that is asked for, or that follows from where its records are; "" if it has to be
// found out.
func KindOf(kind, records string) string {
	if kind != "" && kind != "auto" {
		return kind
	}
	if r, err := unit.Parse(records); err == nil && r.Type != nil {
		return rawKind
	}
	return ""
}

// unitFiles returns the files of a source that has a unit in each, in the order of units, or the only file of a folder or
// glob without a declaration, which is read as itself; nil of any other source.
func unitFiles(ctx context.Context, root *vfs.Root, path, kind string, records string) ([]string, error) {
	if _, _, ok := source.SplitGeneration(path); ok || endings[kind] == nil { // which a dataset has
		return nil, nil
	}
	files, err := source.Files(path)
	if err != nil {
		return nil, err
	}
	single := len(files) == 1 && files[0] == path
	if len(files) == 1 && kind != "zarr" && source.IsDir(root, files[0]) {
		files = filesIn(root, files[0], kind)
	} else if single && (openGrouped[kind] != nil || records == "") {
		return nil, nil
	}
	slices.SortFunc(files, unit.Compare)
	if kind == "npy" && records == "" && !areSamples(ctx, root, files) {
		return nil, nil
	}
	return files, nil
}

// areSamples reports whether .npy files have a sample or several each, and not a field: they have one type and one
// shape but for the first axis, whose lengths differ, or many names that differ in numbers.
func areSamples(ctx context.Context, root *vfs.Root, files []string) bool {
	var first array.Column
	same, numbered := true, len(files) >= meta.LeastNumbered
	for i, f := range files {
		c, closer, err := array.NPY(ctx, root, f)
		if err != nil || closer.Close() != nil || c.Single {
			return false // it is reported where the values are needed
		}
		if i == 0 {
			first = c
		}
		if c.Field.DType != first.Field.DType || !slices.Equal(c.Field.Shape, first.Field.Shape) {
			return false
		}
		same = same && c.Count == first.Count
		numbered = numbered && meta.Numberless(filepath.Base(f)) == meta.Numberless(filepath.Base(files[0]))
	}
	return !same || numbered && len(first.Field.Shape) > 0
}

// filesIn returns the files of a folder that are units.
func filesIn(root *vfs.Root, folder, kind string) (files []string) {
	for _, ending := range endings[kind] {
		files = append(files, source.Visible(root.Glob(folder, "*"+ending))...)
	}
	return files
}

// openUnitFiles opens a source of files with units.
func openUnitFiles(ctx context.Context, root *vfs.Root, path, kind string, files []string, opts source.Options,
	selection []column.Selection) (source.Source, error) {
	records := &unit.Records{Levels: []string{"*"}}
	if opts.Records != "" {
		var err error
		if records, err = unit.Parse(opts.Records); err != nil {
			return nil, err
		}
	}
	units, err := unitsOf(ctx, root, kind, files, records)
	if err != nil {
		return nil, err
	}
	hint := ""
	if _, cells := units[0].(unit.Named); cells {
		records.Rows = records.Rows || opts.Records == ""
	} else if opts.Records == "" {
		certain, err := unit.Guess(units, records, unit.Chosen(selection, opts.Only))
		if err == nil && !certain {
			err = unit.Ambiguous(units, records)
		}
		if err != nil {
			return nil, err
		}
		hint = records.Guessed()
	}
	columns, err := unit.NewColumns(units, records, unit.Chosen(selection, opts.Only))
	if err != nil {
		return nil, err
	}
	return dataset.OfUnits(kind, path, columns, records, hint, nil, "", root)
}

// unitsOf returns the units of files: these, or groups in them.
func unitsOf(ctx context.Context, root *vfs.Root, kind string, files []string, records *unit.Records) (
	units []unit.Unit, err error) {
	below, inGroups := records.Below()
	switch {
	case kind != rawKind && records.Type != nil:
		return nil, fmt.Errorf("records %q: files of kind %s have types of their own; leave :%v out", records, kind,
			records.Type)
	case len(files) == 0:
		return nil, errors.New("the folder has no files")
	}
	if inGroups && openGrouped[kind] == nil {
		return nil, fmt.Errorf("records %q: files of kind %s have no groups; write * or *[:]", records, kind)
	}
	for i, name := range namesOf(files) {
		f := files[i]
		if !records.Matches(0, filepath.Base(f)) {
			continue
		}
		u := &file{ctx: ctx, root: root, path: f, name: name, kind: kind, raw: records.Type}
		if !inGroups {
			one, err := u.asUnit()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			units = append(units, one)
			continue
		}
		groups, err := u.groups(below)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		units = append(units, groups...)
	}
	if units == nil {
		return nil, fmt.Errorf("records %q: no file has such a name; the first is %s", records, filepath.Base(files[0]))
	}
	return units, nil
}

// namesOf returns the paths of files from the folder that all are in.
func namesOf(files []string) (names []string) {
	folder := filepath.Dir(files[0])
	for _, f := range files {
		for !strings.HasPrefix(f, folder+string(filepath.Separator)) && folder != filepath.Dir(folder) {
			folder = filepath.Dir(folder)
		}
	}
	for _, f := range files {
		name, err := filepath.Rel(folder, f)
		if err != nil {
			name = f
		}
		names = append(names, filepath.ToSlash(name))
	}
	return names
}

// file is a file as a unit, or a group of it.
type file struct {
	ctx        context.Context
	root       *vfs.Root
	path, name string
	kind       string
	raw        *array.Raw // of files without a header
	group      string     // in a file of groups; "" is the file
}

// Name implements unit.Unit.
func (u *file) Name() string { return strings.TrimSuffix(u.name+"/"+u.group, "/") }

// cells is a file of single cells as a unit.
type cells struct {
	*file
	names func() (names unit.Named, err error) // the names of classes and features of the cells
}

// RowName implements unit.Named.
func (c *cells) RowName(row int64) string {
	names, err := c.names()
	if err != nil {
		return strconv.FormatInt(row, 10)
	}
	return names.RowName(row)
}

// opened opens a file of groups and arrays.
func (u *file) opened() (grouped, error) { return openGrouped[u.kind](u.ctx, u.root, u.path) }

// asUnit returns the file as a unit, whose rows have names if they are cells.
func (u *file) asUnit() (unit.Unit, error) {
	if openGrouped[u.kind] == nil {
		return u, nil
	}
	f, err := u.opened()
	if err != nil {
		return nil, err
	}
	inner := f.Cells()
	if err := f.Close(); err != nil || inner == nil {
		return u, err
	}
	return &cells{u, sync.OnceValues(func() (unit.Named, error) {
		f, err := u.opened()
		if err != nil {
			return nil, err
		}
		named := f.Cells().(unit.Named)
		named.RowName(0) // which reads all
		return named, f.Close()
	})}, nil
}

// groups returns the units in a file of groups.
func (u *file) groups(below *unit.Records) (units []unit.Unit, err error) {
	f, err := u.opened()
	if err != nil {
		return nil, err
	}
	list, err := f.Units(below)
	for _, inner := range list {
		group := *u
		group.group = inner.Name()
		units = append(units, &group)
	}
	return units, errors.Join(err, f.Close())
}

// openGroup opens a file of groups, and returns the unit in it.
func (u *file) openGroup() (grouped, unit.Unit, error) {
	f, err := u.opened()
	if err != nil {
		return nil, nil, err
	}
	inner, err := f.Unit(u.group)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, inner, nil
}

// open opens the arrays of a file without groups.
func (u *file) open() (columns []array.Column, bad array.Rejections, closer io.Closer, err error) {
	switch u.kind {
	case "npz":
		return array.NPZ(u.ctx, u.root, u.path)
	case "safetensors":
		return array.Safetensors(u.ctx, u.root, u.path)
	}
	var c array.Column
	if u.raw != nil {
		c, closer, err = u.raw.Open(u.ctx, u.root, u.path)
	} else {
		c, closer, err = array.NPY(u.ctx, u.root, u.path)
	}
	c.Field.Origin = unit.Lone
	return []array.Column{c}, nil, closer, err
}

// Members implements unit.Unit.
func (u *file) Members() (list []unit.Member, err error) {
	if openGrouped[u.kind] != nil {
		f, inner, err := u.openGroup()
		if err != nil {
			return nil, err
		}
		list, err = inner.Members()
		return list, errors.Join(err, f.Close())
	}
	columns, bad, closer, err := u.open()
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		rows := c.Count
		if c.Single {
			rows = -1
		}
		list = append(list, unit.Member{Name: c.Field.Origin, Field: c.Field, Rows: rows})
	}
	for _, r := range bad {
		list = append(list, unit.Member{Name: r.Name, Err: r.Err})
	}
	return list, closer.Close()
}

// Open implements unit.Unit.
func (u *file) Open(members []string) ([]array.Column, io.Closer, error) {
	if openGrouped[u.kind] != nil {
		f, inner, err := u.openGroup()
		if err != nil {
			return nil, nil, err
		}
		columns, _, err := inner.Open(members)
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		return columns, f, nil
	}
	columns, _, closer, err := u.open()
	if err != nil {
		return nil, nil, err
	}
	list := make([]array.Column, len(members))
	for _, c := range columns {
		if i := slices.Index(members, c.Field.Origin); i >= 0 {
			list[i] = c
		}
	}
	return list, closer, nil
}

// Attribute implements unit.Unit.
func (u *file) Attribute(name string) (a unit.Attribute, ok bool) {
	if openGrouped[u.kind] == nil {
		return a, false
	}
	f, inner, err := u.openGroup()
	if err != nil {
		return a, false
	}
	defer f.Close()
	return inner.Attribute(name)
}
