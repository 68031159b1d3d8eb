package loadbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// imagesField is the name of the synthetic dataset's field after preparation.
const imagesField = "images"

// subject is the data to load: a source of records that are yet to be prepared (raw), and a source
// of prepared records (stored). For a user's dataset both are the same.
type subject struct {
	info      Dataset
	raw       loader.Source // records to be prepared
	workField string        // the field of raw on which the work is done; "" if all fields have records of different lengths
	make      tensor.Spec   // the result of the work; the zero Spec if it copies what is stored
	stored    loader.Source
	files     []*store.Dataset // the files of stored
	why       string           // why stored is nil
	once      time.Duration    // the time of storing the prepared records, if this run did it
	folder    string           // removed at the end

	closers []func() error
}

// openSubject opens the user's dataset. The caller closes the subject.
func openSubject(o *Options) (*subject, error) {
	ds, err := o.Cache.Any(context.Background(), o.Path, datasetarg.Options{Fields: o.Fields, Split: o.Split})
	if err != nil {
		return nil, err
	}
	src := ds.Source
	s := &subject{
		info: Dataset{Name: remote.RedactURLs(o.Path), Records: src.Len()}, raw: src, stored: src,
		closers: []func() error{ds.Close},
	}
	if src.Len() == 0 {
		return nil, errors.Join(fmt.Errorf("%q has no records", o.Path), s.close())
	}
	for _, p := range ds.Parts() {
		if local, ok := p.(*mmapds.Dataset); ok {
			s.files = append(s.files, local.Files())
		}
	}
	s.info.RecordBytes, s.workField = sizes(src.Specs())
	for _, spec := range src.Specs() {
		s.info.Fields = append(s.info.Fields, describe(spec))
	}
	return s, nil
}

// sizes returns the bytes of a record, 0 if records differ, and the largest field whose records
// have one length, "" if all fields are ragged.
func sizes(specs []tensor.Spec) (record int, largest string) {
	most, ragged := -1, false
	for _, spec := range specs {
		n := spec.RecordBytes()
		ragged = ragged || spec.Ragged
		if record += n; !spec.Ragged && n > most {
			most, largest = n, spec.Name
		}
	}
	if ragged {
		record = 0
	}
	return record, largest
}

// describe returns name, type and shape of a field.
func describe(spec tensor.Spec) string {
	text := fmt.Sprintf("%s %v %v", spec.Name, spec.DType, spec.Shape)
	if spec.Ragged {
		text += " of variable length"
	}
	return text
}

// synthesize returns the tutorial's dataset, whose records are made when they are asked for. It
// also makes and stores them once, for the precomputed rows; if that fails, only these rows are not
// available.
func synthesize(ctx context.Context, o *Options, report func(int)) (*subject, error) {
	spec := tensor.Spec{Name: imagesField, DType: tensor.Float32, Shape: o.Shape}
	s := &subject{raw: numbers(o.Size), workField: numbersField, make: spec,
		info: Dataset{Name: "synthetic", Records: o.Size, RecordBytes: spec.RecordBytes(), Fields: []string{describe(spec)}}}
	began := time.Now()
	err := s.store(ctx, o, report)
	if ctx.Err() != nil {
		return s, err
	}
	if err != nil {
		s.why = err.Error()
	}
	s.once = time.Since(began)
	return s, nil
}

// store makes all records once, and writes them to a dataset in a temporary folder.
func (s *subject) store(ctx context.Context, o *Options, report func(int)) error {
	folder, err := os.MkdirTemp("", "loadbench-")
	if err != nil {
		return err
	}
	s.folder = folder
	path := filepath.Join(folder, "synthetic")
	schema := store.Schema{Fields: []store.Field{store.NewField(imagesField, tensor.Float32, s.make.Shape...)}}
	w, err := flat.Create(path, schema, flat.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	record := store.NewRecord(schema)
	for i := range o.Size {
		if err := ctx.Err(); err != nil {
			return err
		}
		normal(tensor.As[float32](tensor.Of(s.make, 1, record.Values[0])), o.Seed, uint64(i))
		if err := w.Append(record); err != nil {
			return err
		}
		report(1)
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		return err
	}
	ds, err := mmapds.Open(path)
	if err != nil {
		return err
	}
	s.stored, s.files, s.closers = ds, []*store.Dataset{ds.Files()}, append(s.closers, ds.Close)
	return nil
}

// close closes the subject, and removes what it has written.
func (s *subject) close() error {
	var err error
	for _, f := range s.closers {
		err = errors.Join(err, f())
	}
	if s.folder != "" {
		err = errors.Join(err, os.RemoveAll(s.folder))
	}
	return err
}

// storedField returns the largest field of the stored dataset.
func (s *subject) storedField() string {
	if s.make.DType != tensor.Invalid {
		return imagesField
	}
	return s.workField
}
