package mmapds

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/h5meta"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Where store/hdf5 keeps the books of a dataset.
const (
	manifestPath = "/penstock/manifest"
	crcGroup     = "/penstock/crc/"
)

// maxManifest bounds the memory that opening a file can take.
const maxManifest = 1 << 30

// locateHDF5 finds the datasets of an HDF5 file: those that its manifest lists, or in a file
// of other origin all those of numbers.
func locateHDF5(path string, fields []string) (*store.Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("mmapds: open %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("mmapds: open %w", err)
	}
	d := &store.Dataset{Path: path, Format: "hdf5"}
	file, err := h5meta.Open(f, info.Size())
	switch {
	case errors.Is(err, h5meta.ErrNotHDF5):
		return nil, fmt.Errorf("mmapds: open %q: neither a folder nor an HDF5 file: %w", path, store.ErrUnsupported)
	case err == nil:
		err = locateIn(file, d, fields)
	}
	if err != nil {
		return nil, fmt.Errorf("mmapds: open %q: %w", path, inStore(err))
	}
	if fields == nil {
		return d, nil
	}
	return selectFields(d, fields)
}

func locateIn(file *h5meta.File, d *store.Dataset, fields []string) error {
	manifest, err := file.Dataset(manifestPath)
	if err != nil {
		return locateForeign(file, d, fields)
	}
	v, err := manifest.Value(maxManifest)
	if err != nil {
		return fmt.Errorf("%s: %w", manifestPath, err)
	}
	text, ok := v.Text()
	if !ok {
		return fmt.Errorf("%s is not a text: %w", manifestPath, store.ErrCorrupt)
	}
	if d.Manifest, err = store.DecodeManifest([]byte(text)); err != nil {
		return fmt.Errorf("%s: %w", manifestPath, err)
	}
	if a, ok := file.Root.Attrs.Get("complete"); !ok || !isOne(a) {
		return fmt.Errorf("it is not marked complete, so its build did not finish: %w", store.ErrCorrupt)
	}
	d.Schema, d.Records = d.Manifest.Schema(), d.Manifest.Records
	for _, field := range d.Schema.Fields {
		e, err := locateField(file, d, field)
		if err != nil {
			return fmt.Errorf("dataset %q: %w", field.Name, err)
		}
		d.Extents = append(d.Extents, []store.Extent{e})
	}
	return nil
}

func isOne(a *h5meta.Attr) bool {
	n, ok := a.Value.Int()
	return ok && n == 1
}

// locateField finds a field and its checksums, and compares them with the manifest.
func locateField(file *h5meta.File, d *store.Dataset, field store.Field) (store.Extent, error) {
	data, err := file.Dataset(field.Name)
	if err != nil {
		return store.Extent{}, err
	}
	if err := sameShape(data, field.Spec, d.Records); err != nil {
		return store.Extent{}, err
	}
	sums, err := file.Dataset(crcGroup + field.Name)
	if err != nil {
		return store.Extent{}, err
	}
	if err := sameShape(sums, tensor.Spec{DType: tensor.Uint32}, store.Blocks(d.Records, field.RecordBytes())); err != nil {
		return store.Extent{}, fmt.Errorf("checksums: %w", err)
	}
	return store.Extent{
		Path: d.Path, Offset: data.Layout.Offset, Count: d.Records,
		SumsPath: d.Path, SumsOffset: sums.Layout.Offset,
	}, nil
}

// sameShape makes sure that a dataset is mappable and holds n records of spec. bfloat16 is
// stored as its bits.
func sameShape(data *h5meta.Dataset, spec tensor.Spec, n int64) error {
	if err := mappable(data); err != nil {
		return err
	}
	got, err := data.Spec()
	if err != nil {
		return err
	}
	if data.Records() != n || !slices.Equal(got.Shape, spec.Shape) || got.DType.Descr() != spec.DType.Descr() {
		return fmt.Errorf("%d records of %v %v, but the manifest says %d of %v %v: %w",
			data.Records(), got.DType, got.Shape, n, spec.DType, spec.Shape, store.ErrCorrupt)
	}
	return nil
}

// mappable is h5meta's, with what to do about it.
func mappable(data *h5meta.Dataset) error {
	err := data.Mappable()
	if err == nil && !data.Aligned() {
		err = fmt.Errorf("it starts at byte %d, which is no multiple of its element size: %w", data.Layout.Offset, h5meta.ErrUnsupported)
	}
	if errors.Is(err, h5meta.ErrUnsupported) {
		return fmt.Errorf("%w; rewrite it: h5repack -f NONE -l CONTI OLD.h5 NEW.h5", err)
	}
	return err
}

// locateForeign takes datasets of numbers with one common number of records.
func locateForeign(file *h5meta.File, d *store.Dataset, fields []string) error {
	var lengths []string
	for data := range file.All() {
		name := strings.TrimPrefix(data.Path, "/")
		if fields != nil && !slices.Contains(fields, name) || fields == nil && !isNumbers(data) {
			continue
		}
		e, field, err := foreignField(data, d.Path, name)
		if err != nil {
			return fmt.Errorf("dataset %q: %w", name, err)
		}
		lengths = append(lengths, fmt.Sprintf("%s has %d", name, data.Records()))
		if len(lengths) > 1 && data.Records() != d.Records {
			return fmt.Errorf("its datasets are of several lengths (%s), so they are no fields of one dataset; choose some by Options.Fields: %w",
				strings.Join(lengths, ", "), store.ErrUnsupported)
		}
		d.Records = data.Records()
		d.Schema.Fields = append(d.Schema.Fields, field)
		d.Extents = append(d.Extents, []store.Extent{e})
	}
	if len(d.Extents) == 0 {
		return fmt.Errorf("it has no dataset of numbers with an axis of records: %w", store.ErrUnsupported)
	}
	return nil
}

// isNumbers tells data from names, scalars and the like.
func isNumbers(data *h5meta.Dataset) bool {
	return !data.Null && len(data.Dims) > 0 && (data.Err != nil || data.Type.DType() != tensor.Invalid)
}

func foreignField(data *h5meta.Dataset, path, name string) (store.Extent, store.Field, error) {
	if err := mappable(data); err != nil {
		return store.Extent{}, store.Field{}, err
	}
	spec, err := data.Spec()
	if err != nil {
		return store.Extent{}, store.Field{}, err
	}
	field := store.NewField(name, spec.DType, spec.Shape...)
	return store.Extent{Path: path, Offset: data.Layout.Offset, Count: data.Records()}, field, nil
}

// inStore gives errors of h5meta the marks that callers of this package look for.
func inStore(err error) error {
	switch {
	case errors.Is(err, h5meta.ErrCorrupt) && !errors.Is(err, store.ErrCorrupt):
		return &marked{err, store.ErrCorrupt}
	case errors.Is(err, h5meta.ErrUnsupported) && !errors.Is(err, store.ErrUnsupported):
		return &marked{err, store.ErrUnsupported}
	}
	return err
}

// marked is an error that is a sentinel, too, without saying it twice.
type marked struct {
	error
	mark error
}

func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }
