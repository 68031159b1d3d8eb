package store

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/tensor"
)

// OpenZarr finds the arrays of a folder of Zarr, of version 2 or 3: the arrays of its manifest or, in a folder that
// penstock did not write, the arrays that opts names, or all arrays of numbers, which then must have one length. A
// field has the path of its array; a folder that is itself an array gives the field its name. Arrays whose chunks are
// whole records without a codec can be mapped; others need opts.Packed.
//
// The path may end with a generation, as in OpenFlat. The errors are the same as OpenFlat's.
func OpenZarr(path string, opts OpenOptions) (*Dataset, error) {
	folder, generation, err := opts.at(path)
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return openZarr(folder, generation, opts)
}

// openZarr opens a folder by its manifest, or by its Zarr metadata if penstock did not write it.
func openZarr(path, generation string, opts OpenOptions) (*Dataset, error) {
	d := &Dataset{Path: path, Format: "zarr"}
	d.layout.Arrays = make(map[string]*zarr.Array)
	var err error
	if layout.IsZarr(path) {
		if d.Manifest, err = readGeneration(path, generation); err == nil {
			err = d.locateZarr(vfs.Folder(path))
		}
	} else {
		var g *zarr.Group
		if g, err = zarr.Open(vfs.Folder(path)); err == nil {
			err = d.addArrays(g, opts)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return d, nil
}

// readZarr is OpenZarr for files that penstock wrote, whose manifest is data. The files may be in a bucket.
func readZarr(path string, files zarr.Files, data []byte) (*Dataset, error) {
	d := &Dataset{Path: path, Format: "zarr"}
	d.layout.Arrays = make(map[string]*zarr.Array)
	var err error
	if d.Manifest, err = DecodeManifest(data); err == nil {
		err = d.locateZarr(files)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	return d, nil
}

// addArrays adds the wanted arrays as columns.
func (d *Dataset) addArrays(g *zarr.Group, opts OpenOptions) error {
	if g.IsCells() {
		return fmt.Errorf("it has single cells, as anndata writes them: %w; make a dataset of them: %s", ErrUnsupported,
			shell.Rewrite(d.Path, ""))
	}
	if s := g.Siblings(); s != nil && opts.Fields == nil {
		groups := path.Join(path.Dir(s[0]), "*")
		return fmt.Errorf("%s and %s (%d in all) have the same arrays, so each is a record or a sequence of records: "+
			"records=\"%s[:]\" or records=%q says which in Python, and --records in preprocess: %w", s[0], s[1], len(s),
			groups, groups, ErrUnsupported)
	}
	var lengths, known []string
	var axes recordAxes
	for _, a := range g.Arrays {
		if a.Err == nil {
			axes.add(a.Dimensions, a.Path, a.Records())
		}
	}
	d.layout.Coordinates = axes.coordinates
	for _, a := range g.Arrays {
		name := a.Path
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(d.Path), filepath.Ext(d.Path))
		}
		spec, err := a.Spec()
		if err == nil {
			known = append(known, name)
		}
		if opts.Fields != nil && !slices.Contains(opts.Fields, name) || opts.Fields == nil &&
			(errors.Is(err, layout.ErrUnsupported) || err == nil && axes.isOther(a.Dimensions, a.Path, a.Records())) {
			continue
		}
		if err == nil {
			err = d.addArray(name, spec, a, opts)
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		lengths = append(lengths, fmt.Sprintf("%s has %d", name, a.Records()))
		if len(lengths) > 1 && a.Records() != d.Records {
			return fmt.Errorf("its arrays are of several lengths (%s), so they are not fields of one dataset; name those that "+
				"belong together (fields=[...] in Python, mmapds.WithFields in Go): %w",
				strings.Join(lengths, ", "), ErrUnsupported)
		}
		d.Records = a.Records()
	}
	for _, name := range opts.Fields {
		if d.Schema.Index(name) < 0 {
			return noField(name, known)
		}
	}
	if len(d.layout.Columns) == 0 {
		return fmt.Errorf("it has no array of numbers with an axis of records: %w", ErrUnsupported)
	}
	for _, a := range g.Arrays {
		if opts.Fields == nil && errors.Is(a.Err, layout.ErrUnsupported) && len(a.Shape) > 0 && a.Shape[0] == d.Records {
			return fmt.Errorf("array %q has a value for each record, and would be left out: %w; open the others by name (%s)",
				a.Path, a.Err, strings.Join(known, ", "))
		}
	}
	d.identifyCoordinates(func(name string) (*chunk.Reader, tensor.Spec, error) {
		a := g.Arrays[slices.IndexFunc(g.Arrays, func(a *zarr.Array) bool { return a.Path == name })]
		spec, err := a.Spec()
		if err != nil {
			return nil, spec, err
		}
		r, err := a.Reader(chunk.Options{})
		return r, spec, err
	})
	return nil
}

func (d *Dataset) addArray(name string, spec tensor.Spec, a *zarr.Array, opts OpenOptions) error {
	field := NewField(name, spec.DType, spec.Shape...)
	field.Dims, field.Meaning = layout.NamedAxes(a.Dimensions, field.Shape), a.Meaning()
	if err := field.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	extents, err := a.Extents()
	if err != nil {
		return err
	}
	c := layout.Column{Field: len(d.Schema.Fields), Name: name, Spec: field.Spec, Packed: extents == nil}
	for _, e := range extents {
		c.Add(d.extent(e))
	}
	if c.Packed {
		if !opts.Packed {
			return fmt.Errorf("%s: %w", a.How(), ErrUnsupported)
		}
		c.Add(layout.Extent{Path: d.Path, Count: a.Records()})
	}
	d.Schema.Fields, d.layout.Columns = append(d.Schema.Fields, field), append(d.layout.Columns, c)
	d.layout.Arrays[name] = a
	return nil
}

// locateZarr finds the columns of the manifest among the arrays of a folder.
func (d *Dataset) locateZarr(files zarr.Files) error {
	arrays, err := d.readNodes(files)
	if err != nil {
		return err
	}
	d.Schema, d.Records = d.Manifest.Schema(), d.Manifest.Records
	d.layout.Columns = layout.Columns(d.Schema.Specs())
	for k := range d.layout.Columns {
		c := &d.layout.Columns[k]
		c.Stored = d.Manifest.Arrays[c.FieldName()]
		if err := d.locateArray(c, arrays[c.Path()], arrays[c.SumsPath()]); err != nil {
			return fmt.Errorf("array %q: %w", c.Path()[1:], err)
		}
	}
	return nil
}

// readNodes compares all files of metadata with the manifest, and returns the arrays of the generation by path. The
// files that each generation replaces may belong to a newer generation. In a bucket these files are not read at all:
// nothing tells whether a writer is replacing them at the moment.
func (d *Dataset) readNodes(files zarr.Files) (map[string]*zarr.Array, error) {
	_, here := files.(vfs.Folder)
	arrays := make(map[string]*zarr.Array)
	for name, want := range d.Manifest.Metadata {
		if layout.OfNewest(name) && !here {
			continue
		}
		text, err := zarr.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, layout.WithoutPath(err))
		}
		if got := layout.HexCRC(layout.CRC32C(text)); got != want && !(layout.OfNewest(name) && d.superseded(name, got)) {
			return nil, fmt.Errorf("%s: its CRC32C is %s, was %s when it was written: %w", name, got, want, ErrCorrupt)
		}
		at := path.Dir(name)
		a, err := zarr.Parse(files, at, text)
		if err != nil {
			return nil, err
		}
		if a != nil {
			arrays["/"+at] = a
		}
	}
	return arrays, nil
}

// superseded reports whether a file of metadata with that checksum belongs to another generation: to the generation of
// the manifest in the folder, or to another kept generation, whose writer is replacing the files at this moment.
func (d *Dataset) superseded(name, crc string) bool {
	m, _, err := FolderAt(d.Path).read(layout.ZarrManifest)
	if err == nil && m.Generation != d.Manifest.Generation {
		return true
	}
	numbers, _ := Generations(d.Path)
	for _, n := range numbers {
		if m, _, err := FolderAt(d.Path).read(layout.GenerationName(n)); err == nil && m.Metadata[name] == crc {
			return true
		}
	}
	return false
}

// locateArray finds the rows and checksums of a column, and compares both arrays with the manifest.
func (d *Dataset) locateArray(c *layout.Column, a, sums *zarr.Array) error {
	if a == nil || sums == nil {
		return fmt.Errorf("it, or the array of its checksums, is missing: %w", ErrCorrupt)
	}
	if len(a.Shape) == 0 || len(sums.Shape) == 0 {
		return fmt.Errorf("it, or the array of its checksums, has no axis of rows: %w", ErrCorrupt)
	}
	rows := c.RowsOf(d.Records, a.Records())
	c.Packed = d.Manifest.Storage[c.Name] != nil
	if err := sameArray(a, c.Spec, rows); err != nil {
		return err
	}
	extents, err := d.extentsOf(a, c.Packed)
	if err != nil {
		return err
	}
	blocks := int64(0)
	for _, e := range extents {
		e.Folder = filepath.Clean(d.Path)
		e.SumsPath, e.SumsOffset = filepath.Join(d.Path, filepath.FromSlash(sums.Path), layout.ZarrSums), 4*blocks
		blocks += layout.Blocks(e.Count, c.Spec.RecordBytes())
		c.Add(e)
	}
	if err := sameArray(sums, layout.ChecksumSpec, blocks); err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	if c.Part != layout.Whole && len(c.Extents) != 1 {
		return fmt.Errorf("it has %d shards, not 1: %w", len(c.Extents), ErrCorrupt)
	}
	d.layout.Arrays[c.Name] = a
	return nil
}

// sameArray makes sure that an array has n rows of spec. Zarr has no bfloat16, which is stored as its bits, so the
// storage types are compared.
func sameArray(a *zarr.Array, spec tensor.Spec, n int64) error {
	got, err := a.Spec()
	if err != nil {
		return err
	}
	if a.Records() != n || !slices.Equal(got.Shape, spec.Shape) || got.DType.Descr() != spec.DType.Descr() {
		return fmt.Errorf("%d rows of %v %v, but the manifest says %d of %v %v: %w", a.Records(), got.DType, got.Shape, n,
			spec.DType, spec.Shape, ErrCorrupt)
	}
	return nil
}

// extent returns the place of an array's rows in a file of the folder.
func (d *Dataset) extent(e zarr.Extent) layout.Extent {
	return layout.Extent{Path: filepath.Join(d.Path, filepath.FromSlash(e.Name)), Folder: filepath.Clean(d.Path),
		Offset: e.Offset, Count: e.Count}
}

// extentsOf returns the rows of each shard of an array.
func (d *Dataset) extentsOf(a *zarr.Array, packed bool) (list []layout.Extent, err error) {
	n := a.Records()
	switch {
	case n == 0:
		return []layout.Extent{{Path: filepath.Join(d.Path, filepath.FromSlash(a.Path), layout.ZarrNode)}}, nil
	case packed && len(a.Shards) > 0:
		for row := int64(0); row < n; row += a.Shards[0] {
			list = append(list, layout.Extent{Path: d.Path, Row: row, Count: min(a.Shards[0], n-row)})
		}
		return list, nil
	}
	extents, err := a.Extents()
	if err == nil && extents == nil {
		err = fmt.Errorf("%s, with chunks that are missing, or not whole: %w", a.How(), ErrCorrupt)
	}
	for _, e := range extents {
		list = append(list, d.extent(e))
	}
	return list, err
}
