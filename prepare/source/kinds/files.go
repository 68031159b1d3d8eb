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

// grouped is a file with groups: *hdf5.File or *zarr.File.
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

// rawKind is the kind of files without a header, whose element type is in Options.Records.
const rawKind = "bin"

// KindOf returns the kind that the user asked for, or that follows from the declaration of records; "" if it must
// be detected.
func KindOf(kind, records string) string {
	if kind != "" && kind != "auto" {
		return kind
	}
	if r, err := unit.Parse(records); err == nil && r.Type != nil {
		return rawKind
	}
	return ""
}

// unitFiles returns the files of a source in which each file is or has units. A folder or glob
// without a declaration may turn out to be a single file, which is opened as itself. It returns nil for any other
// source.
//
//	data.npz                      nil: the arrays of the file are fields
//	data.npz, records *           the file, whose arrays are one record
//	episodes/ or episodes/*.npz   each file is a unit
//	arrays/ with x.npy and y.npy  nil: each file is a field; with samples in each file (areSamples), a unit
//	data.hdf5, data.zarr          nil: their packages look for units inside
func unitFiles(ctx context.Context, root *vfs.Root, path, kind string, records string) ([]string, error) {
	if _, _, ok := source.SplitGeneration(path); ok || endings[kind] == nil { // which a dataset has
		return nil, nil
	}
	files, err := source.Files(path)
	if err != nil {
		return nil, err
	}
	// A file that the user named is not a folder of units, unless its records are declared.
	single := len(files) == 1 && files[0] == path
	if len(files) == 1 && source.IsDir(root, files[0]) && !source.IsZarr(root, files[0]) {
		files = filesIn(root, files[0], kind)
	} else if single && (openGrouped[kind] != nil || records == "") {
		return nil, nil
	}
	if strings.ContainsAny(path, "*?[") { // a list in braces has the order of the user
		slices.SortFunc(files, unit.Compare)
	}
	if kind == "npy" && records == "" && !areSamples(ctx, root, files) {
		return nil, nil
	}
	return files, nil
}

// areSamples reports whether .npy files are samples and not fields of one dataset. They are if all have one type
// and one row shape, and either their lengths differ or there are many arrays of several axes whose names differ
// only in numbers.
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
		// x.npy and y.npy of one dataset mostly differ here.
		if c.Field.DType != first.Field.DType || !slices.Equal(c.Field.Shape, first.Field.Shape) {
			return false
		}
		same = same && c.Count == first.Count
		numbered = numbered && meta.Numberless(filepath.Base(f)) == meta.Numberless(filepath.Base(files[0]))
	}
	return !same || numbered && len(first.Field.Shape) > 0
}

// filesIn returns the files of a folder that can have units of a kind, sorted as units are.
func filesIn(root *vfs.Root, folder, kind string) (files []string) {
	for _, ending := range endings[kind] {
		files = append(files, source.Visible(root.Glob(folder, "*"+ending))...)
	}
	// Globs sort by bytes, where episode_10 comes before episode_9.
	slices.SortFunc(files, unit.Compare)
	return files
}

// openUnitFiles opens the source of files with units. Without a declaration, each file is a unit, and unit.Guess
// decides whether it is a record or holds rows.
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
	if first, ok := units[0].(*file); ok && first.group == "" {
		records.File = first.path
	}
	if _, cells := units[0].(unit.Named); cells {
		records.Rows = records.Rows || opts.Records == ""
	} else if opts.Records == "" {
		certain, err := unit.Guess(units, records, selection)
		if err == nil && !certain {
			err = unit.Ambiguous(units, records)
		}
		if err != nil {
			return nil, err
		}
		hint = records.Guessed()
	}
	columns, err := unit.NewColumns(units, records, selection)
	if err != nil {
		return nil, err
	}
	return dataset.OfUnits(kind, path, columns, records, hint, unit.Lists{}, nil, root)
}

// unitsOf returns the units of files: the files, or the groups in them.
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

// namesOf returns the paths of files relative to the deepest folder that contains all files.
func namesOf(files []string) (names []string) {
	folder := filepath.Dir(files[0])
	for _, f := range files {
		// The loop ends at the root of the file system, whose parent is itself.
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

// file is a file, or a group in a file, as a unit. It is not open: a source can have more files than a process may
// open, so each method opens the file and closes it again. The closer of Open keeps it open for the caller.
type file struct {
	ctx        context.Context
	root       *vfs.Root
	path, name string
	kind       string
	raw        *array.Raw // element type of a file without a header; nil for other files
	group      string     // path of a group in the file; "" for the file itself
}

// Name implements unit.Unit.
func (u *file) Name() string { return strings.TrimSuffix(u.name+"/"+u.group, "/") }

// cells is a file of single cells as a unit.
type cells struct {
	*file
	names func() (names unit.Named, err error) // reads the names of the cells on first use
}

// RowName implements unit.Named.
func (c *cells) RowName(row int64) string {
	names, err := c.names()
	if err != nil {
		return strconv.FormatInt(row, 10)
	}
	return names.RowName(row)
}

// opened opens a file with groups.
func (u *file) opened() (grouped, error) { return openGrouped[u.kind](u.ctx, u.root, u.path) }

// asUnit returns the file as a unit. The rows of a file of single cells have names, which are read only when they
// are needed.
func (u *file) asUnit() (unit.Unit, error) {
	if openGrouped[u.kind] == nil {
		return u, nil
	}
	f, err := u.opened()
	if err != nil {
		return nil, err
	}
	// The file is opened to look at it, and closed again: a source may have thousands of files.
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
		// The names stay in memory after the file is closed.
		named.RowName(0) // which reads all
		return named, f.Close()
	})}, nil
}

// groups returns the units in a file with groups, as files that are not open.
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

// openGroup opens the file, and returns it with its unit. The caller closes the file.
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

// open opens a file without groups, and returns its arrays. The array of a file with one array is called unit.Lone.
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
