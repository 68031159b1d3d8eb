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

// imagesField is the field of the synthetic dataset's records once they are made.
const imagesField = "images"

// subject is the data to load: the source of records that are still to be prepared, and the
// place of prepared ones.
type subject struct {
	info      Dataset
	raw       loader.Source // to be prepared
	workField string        // the field of raw that the work is done on; "" if all lengths differ
	make      tensor.Spec   // what the work makes; the zero Spec where it copies what is stored
	stored    loader.Source
	files     []*store.Dataset // of stored
	why       string           // why there is no stored dataset
	once      time.Duration    // that it took to store it, where this run did
	folder    string           // to be removed at the end

	closers []func() error
}

// openSubject opens the user's dataset.
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

// sizes returns the bytes of a record, 0 if they differ, and the largest field whose records
// have one length, "" if there is none.
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

func describe(spec tensor.Spec) string {
	text := fmt.Sprintf("%s %v %v", spec.Name, spec.DType, spec.Shape)
	if spec.Ragged {
		text += " of variable length"
	}
	return text
}

// synthesize prepares the tutorial's dataset: its records are made when they are asked for,
// and once beforehand for the rows that compare with that.
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

// store makes all records once and writes them to a dataset in a separate folder.
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

// close ends the subject, and removes what it wrote.
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
