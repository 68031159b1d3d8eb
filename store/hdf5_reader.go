package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/tensor"
)

// OpenHDF5 finds the datasets of an HDF5 file: the datasets that its manifest lists or, in a file that penstock did not
// write, the datasets that opts names.
//
// OpenHDF5 returns the same errors as OpenFlat. If data of a foreign file cannot be mapped (chunked, compressed, of a
// foreign type, ...), the error is ErrUnsupported, gives the reason, and names the command that makes a file that can
// be mapped. For a view of a flat dataset the error is also ErrView, and names the dataset.
//
// The path may end with the number of the only generation.
func OpenHDF5(path string, opts OpenOptions) (*Dataset, error) {
	file, generation, err := opts.at(path)
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return openHDF5(file, generation, opts)
}

func openHDF5(path, generation string, opts OpenOptions) (*Dataset, error) {
	f, file, err := openHDF5File(path, generation)
	switch {
	case errors.Is(err, meta.ErrNotHDF5):
		return nil, fmt.Errorf("store: open %q: %w: neither a folder nor an HDF5 file%s; to make a dataset of "+
			"samples, run: %s", path, ErrUnsupported, found(err), shell.Penstock("preprocess SOURCE DEST"))
	case err != nil:
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	defer f.Close()
	d, err := readHDF5(path, file, opts)
	if err != nil {
		return nil, err
	}
	d.identifyCoordinates(func(name string) (*chunk.Reader, tensor.Spec, error) {
		data, err := file.Dataset("/" + name)
		if err != nil {
			return nil, tensor.Spec{}, err
		}
		spec, err := data.Spec()
		if err != nil {
			return nil, spec, err
		}
		r, err := chunk.NewReader(f, data, chunk.Options{})
		return r, spec, err
	})
	return d, nil
}

// found describes, for an error, what a file is that is not HDF5.
func found(err error) string {
	if e := (*meta.Error)(nil); errors.As(err, &e) {
		return "; it " + e.Msg
	}
	return ""
}

// readHDF5 is OpenHDF5 for a file whose metadata has been read. The extents of the dataset have that path, which may be
// the name of an object in a bucket.
func readHDF5(path string, file *meta.File, opts OpenOptions) (*Dataset, error) {
	d := &Dataset{Path: path, Format: "hdf5", layout: layout.Dataset{File: file}}
	err := refuseView(path, file)
	if err == nil {
		err = locateIn(file, d, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return d, nil
}

// locateIn finds the columns of a file that penstock wrote, by its manifest. The attribute "complete" is written last:
// a file without it is left from a build that was killed, although every dataset may be in it.
func locateIn(file *meta.File, d *Dataset, opts OpenOptions) error {
	m, _, err := hdf5Manifest(file)
	if errors.Is(err, fs.ErrNotExist) {
		return locateForeign(file, d, opts)
	}
	if err != nil {
		return err
	}
	d.Manifest = m
	if a, ok := file.Root.Attrs.Get("complete"); !ok || !isOne(a) {
		return fmt.Errorf("it is not marked complete, so its build did not finish: %w", ErrCorrupt)
	}
	d.Schema, d.Records = d.Manifest.Schema(), d.Manifest.Records
	d.layout.Columns = layout.Columns(d.Schema.Specs())
	for k := range d.layout.Columns {
		c := &d.layout.Columns[k]
		if err := locateColumn(file, d, c); err != nil {
			return fmt.Errorf("dataset %q: %w", c.Path()[1:], err)
		}
	}
	return nil
}

func isOne(a *meta.Attr) bool {
	n, ok := a.Value.Int()
	return ok && n == 1
}

// locateColumn finds a column and its checksums, and compares both with the manifest.
func locateColumn(file *meta.File, d *Dataset, c *layout.Column) error {
	data, err := file.Dataset(c.Path())
	if err != nil {
		return err
	}
	rows := c.RowsOf(d.Records, data.Records())
	c.Packed = c.Part != layout.Offsets && data.Layout.Kind == meta.Chunked
	if !c.Packed {
		err = mappedRows(data, rows)
	}
	if err == nil {
		err = sameShape(data, c.Spec, rows)
	}
	if err != nil {
		return err
	}
	sums, err := file.Dataset(c.SumsPath())
	if err != nil {
		return err
	}
	blocks := layout.Blocks(rows, c.Spec.RecordBytes())
	if err = mappedRows(sums, blocks); err == nil {
		err = sameShape(sums, layout.ChecksumSpec, blocks)
	}
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	c.Add(layout.Extent{
		Path: d.Path, Offset: max(0, data.Layout.Offset), Count: rows,
		SumsPath: d.Path, SumsOffset: max(0, sums.Layout.Offset),
	})
	return nil
}

// mappedRows makes sure that n rows can be mapped. No rows need no space in the file, so their place does not matter.
func mappedRows(data *meta.Dataset, n int64) error {
	if n == 0 {
		return nil
	}
	return mappable(data)
}

// sameShape makes sure that a dataset has n rows of spec. HDF5 has no bfloat16, which is stored as its bits, so the
// storage types are compared.
func sameShape(data *meta.Dataset, spec tensor.Spec, n int64) error {
	got, err := data.Spec()
	if err != nil {
		return err
	}
	if data.Records() != n || !slices.Equal(got.Shape, spec.Shape) || got.DType.Descr() != spec.DType.Descr() {
		return fmt.Errorf("%d rows of %v %v, but the manifest says %d of %v %v: %w",
			data.Records(), got.DType, got.Shape, n, spec.DType, spec.Shape, ErrCorrupt)
	}
	return nil
}

// mappable reports, like [meta.Dataset.Mappable], whether a dataset can be mapped. It also refuses elements that are
// not aligned, which a view as a typed array cannot have, and adds to the error what to do about it.
func mappable(data *meta.Dataset) error {
	err := data.Mappable()
	if err == nil && !data.Aligned() {
		err = fmt.Errorf("it starts at byte %d, which is no multiple of its element size: %w", data.Layout.Offset,
			meta.ErrUnsupported)
	}
	if !errors.Is(err, meta.ErrUnsupported) {
		return err
	}
	line := data.Remedy("OLD.h5", "NEW.h5")
	if line == "" {
		line = shell.Penstock("preprocess OLD.h5 NEW.h5")
	}
	return fmt.Errorf("%w; make a file that can be: %s", err, line)
}

// locateForeign takes datasets of numbers with one common number of records. Without fields, it leaves out the
// coordinates of other axes and data that cannot be read, and any other dataset of that many records is an error: users
// would not notice that values of each record are missing.
func locateForeign(file *meta.File, d *Dataset, opts OpenOptions) error {
	fields := opts.Fields
	isPath := func(name string) bool { _, err := file.Dataset("/" + name); return err == nil }
	// Fields that are no paths of datasets are arrays of the siblings.
	if siblings := file.Siblings(); siblings != nil && !slices.ContainsFunc(fields, isPath) {
		return siblings.Refusal(d.Path)
	}
	var lengths, known []string
	var others []*meta.Dataset
	var unread error
	axes := axesOf(file)
	d.layout.Coordinates = axes.coordinates
	add := func(data *meta.Dataset, name string) error {
		if err := d.addForeign(data, name, opts.Packed); err != nil {
			return fmt.Errorf("dataset %q: %w", name, err)
		}
		lengths = append(lengths, fmt.Sprintf("%s has %d", name, data.Records()))
		if len(lengths) > 1 && data.Records() != d.Records {
			return fmt.Errorf("its datasets are of several lengths (%s), so they are not fields of one dataset; name those "+
				"that belong together (fields=[...] in Python, mmapds.WithFields in Go): %w",
				strings.Join(lengths, ", "), ErrUnsupported)
		}
		d.Records = data.Records()
		return nil
	}
	for data := range file.Data() {
		name := strings.TrimPrefix(data.Path, "/")
		if isNumbers(data) && !data.IsDimension() {
			known = append(known, name)
		}
		if fields != nil && !slices.Contains(fields, name) || fields == nil && axes.isOther(data.Dimensions(), name,
			data.Records()) || data.IsDimension() {
			continue
		}
		if err := data.Unreadable(); fields == nil && errors.Is(err, meta.ErrUnsupported) {
			unread = fmt.Errorf("dataset %q: %w", name, err)
			continue
		}
		if fields == nil && !isNumbers(data) {
			others = append(others, data)
			continue
		}
		if err := add(data, name); err != nil {
			return err
		}
	}
	for _, name := range fields {
		if d.Schema.Index(name) >= 0 {
			continue
		}
		data, err := file.Dataset("/" + name) // Dataset follows soft links
		switch {
		case err == nil && !isNumbers(data), err != nil && isPath(path.Dir(name)): // a member of a compound
			return fmt.Errorf("field %q is no dataset of numbers: %w", name, ErrUnsupported)
		case err != nil:
			return noField(name, known)
		}
		if err := add(data, name); err != nil {
			return err
		}
	}
	if len(d.layout.Columns) == 0 && unread != nil {
		return unread
	}
	if n := len(d.layout.Columns); n > layout.MaxFields {
		return fmt.Errorf("it has %d arrays, and a dataset has at most %d fields; choose some by name: %w", n, layout.MaxFields,
			ErrUnsupported)
	}
	if len(d.layout.Columns) == 0 {
		return fmt.Errorf("it has no dataset of numbers with an axis of records: %w", ErrUnsupported)
	}
	return leftOut(others, d.Records, known)
}

// leftOut returns an error for a dataset that is not numbers and has a value for each record, such as a string.
func leftOut(others []*meta.Dataset, records int64, known []string) error {
	for _, data := range others {
		if data.Null || len(data.Dims) == 0 || data.Records() != records || data.Type.Class == meta.Reference {
			continue
		}
		return fmt.Errorf("dataset %q holds a %v for each record, which cannot be mapped, and would be left out; "+
			"open the others by name (%s), or make a dataset of all of them: %s: %w",
			strings.TrimPrefix(data.Path, "/"), data.Type.Class, strings.Join(known, ", "),
			shell.Penstock("preprocess OLD.h5 DEST"), ErrUnsupported)
	}
	return nil
}

// axesOf returns the axes of a file's datasets of numbers.
func axesOf(file *meta.File) (axes recordAxes) {
	for data := range file.Data() {
		if isNumbers(data) && !data.IsDimension() {
			axes.add(data.Dimensions(), data.Path, data.Records())
		}
	}
	return axes
}

// beginsAsFile reports whether the first row of bytes begins like an image file. A row that cannot be read is not an
// error here: whoever reads the rows reports it.
func beginsAsFile(data *meta.Dataset) bool {
	r, err := chunk.NewReader(data.Reader(), data, chunk.Options{})
	if err != nil || r.Len() == 0 {
		return false
	}
	row := make([]byte, r.RecordBytes())
	return r.Records(context.Background(), row, 0, 1) == nil && layout.IsPhoto(row)
}

// isNumbers reports whether a dataset may be numbers with an axis of records, unlike names and scalars. A dataset with
// an error counts, so that the error is reported.
func isNumbers(data *meta.Dataset) bool {
	return !data.Null && len(data.Dims) > 0 && (data.Err != nil || data.Type.DType() != tensor.Invalid)
}

// addForeign adds a dataset that another program wrote, or returns why its elements are not records that can be mapped.
// A row of bytes that begins like an image file is refused, though it could be mapped: it is a file padded with zeros,
// and users mean its pixels.
func (d *Dataset) addForeign(data *meta.Dataset, name string, packed bool) error {
	unmapped := mappable(data)
	if packed = packed && errors.Is(unmapped, meta.ErrUnsupported) && len(data.External) == 0; unmapped != nil && !packed {
		return unmapped
	}
	spec, err := data.Spec()
	if err != nil {
		return err
	}
	if data.Type.Classes() != nil {
		return fmt.Errorf("type %v has names of classes, which are read and not mapped: %w", data.Type, ErrUnsupported)
	}
	if spec.DType == tensor.Uint8 && layout.MayBeFiles(spec.Shape) && beginsAsFile(data) {
		return fmt.Errorf("its rows are image files, filled up with zeros, which are read and not mapped: %w", ErrUnsupported)
	}
	field := NewField(name, spec.DType, spec.Shape...)
	field.Dims, field.Meaning = layout.NamedAxes(data.Dimensions(), field.Shape), data.Meaning()
	c := layout.Column{Field: len(d.Schema.Fields), Name: name, Spec: field.Spec, Packed: packed,
		Unaligned: packed && data.Mappable() == nil}
	c.Add(layout.Extent{Path: d.Path, Offset: max(0, data.Layout.Offset), Count: data.Records()})
	d.Schema.Fields, d.layout.Columns = append(d.Schema.Fields, field), append(d.layout.Columns, c)
	return nil
}
