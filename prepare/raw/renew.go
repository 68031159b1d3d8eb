package raw

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"reflect"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// ErrOther marks a dataset that cannot have the records of a source as its next generation, and has to be built
// anew.
var ErrOther = errors.New("the dataset cannot have these records")

// Renew writes a generation of a flat dataset that preprocess built from an earlier state of the source, and
// returns its number. Record i of the source is record places[i] of the dataset; if that is -1, the record is read
// and appended, and places[i] becomes its number. Columns that follow from names alone, such as the labels of class
// folders, are written again if they differ. Records of the dataset without a place stay, unused. No file that
// exists is rewritten, so readers of earlier generations go on. The Source must have all records.
func (s *Source) Renew(ctx context.Context, path string, places []int64, workers int) (generation int, err error) {
	r, err := s.renewal(path, places)
	if err != nil {
		return 0, err
	}
	if err := r.setColumns(ctx); err != nil {
		return 0, err
	}
	if err := r.appendNew(ctx, workers); err != nil {
		return 0, err
	}
	m, err := store.ReadManifest(path)
	if err != nil {
		return 0, err
	}
	return m.Generation, nil
}

// renewal returns how a dataset is brought up to the current state of the source.
func (s *Source) renewal(path string, places []int64) (*renewal, error) {
	m, err := store.ReadManifest(path)
	if err != nil {
		return nil, err
	}
	r := &renewal{records: &s.records, path: path, base: m, places: places}
	names := withoutNames
	if layout.SourceNames(m.Schema().Specs()) >= 0 {
		names = withNames
	}
	if r.job, err = newJob(s.records.listing, s.records.info, names, s.Transforms()); err != nil {
		return nil, err
	}
	return r, r.check()
}

// renewal is a dataset that is brought up to a later state of its source.
type renewal struct {
	*records
	path   string
	base   *store.Manifest
	job    *execute.Job
	places []int64
}

// follows reports whether a field follows from the name of the sample, so that a renamed file needs no reading.
func (r *renewal) follows(field int) bool {
	if r.job.Schema.Fields[field].Content == tensor.SourceName {
		return true
	}
	first, err := r.at(0)
	if err != nil {
		return false
	}
	parted, ok := first.Data.(source.Parted)
	return ok && parted.ReadField(source.NewValues(len(r.job.Source)), field)
}

// check returns ErrOther if fields or splits differ in more than the classes of columns that are written again, or
// if somebody has deleted records of the dataset.
func (r *renewal) check() error {
	fields := r.job.Schema.Fields
	// Deleted records would be in use again if a place pointed to them.
	if r.base.Deleted != nil || len(fields) != len(r.base.Fields) || !slices.Equal(r.base.SplitNames(), r.info.Splits) {
		return ErrOther
	}
	for i, f := range fields {
		old := r.base.Fields[i]
		if r.follows(i) {
			// Classes that were added or renamed are written with the column.
			old.Classes = f.Classes
		}
		if !reflect.DeepEqual(old, f) {
			return fmt.Errorf("field %q: %w", f.Name, ErrOther)
		}
	}
	return nil
}

// setColumns writes the columns that follow from names, for the records that the dataset has, if they differ.
func (r *renewal) setColumns(ctx context.Context) error {
	for i, f := range r.job.Schema.Fields {
		if !r.follows(i) {
			continue
		}
		same, err := r.same(ctx, i)
		if err != nil {
			return err
		}
		// Most renewals add files to known classes: nothing is written for the old records.
		if same && slices.Equal(r.base.Fields[i].Classes, f.Classes) {
			continue
		}
		owners := r.owners()
		values := func(first int64) iter.Seq2[[]byte, error] { return r.column(ctx, i, owners[first:]) }
		if _, err := edit.At(r.path).SetColumn(f, values, edit.Options{By: "cache"}); err != nil {
			return err
		}
	}
	return nil
}

// owners returns, for each record of the dataset, the record of the source that is there; -1 for none.
func (r *renewal) owners() []int64 {
	owners := make([]int64, r.base.Records)
	for i := range owners {
		owners[i] = -1
	}
	for record, place := range r.places {
		if place >= 0 {
			owners[place] = int64(record)
		}
	}
	return owners
}

// column returns the values of a field that follows from names. Records of the dataset without an owner get zeros,
// or an empty value.
func (r *renewal) column(ctx context.Context, field int, owners []int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		v := source.NewValues(len(r.job.Source))
		var none []byte
		if f := r.job.Schema.Fields[field]; !f.Ragged {
			none = make([]byte, f.RecordBytes())
		}
		for _, record := range owners {
			value, err := none, context.Cause(ctx)
			if err == nil && record >= 0 {
				value, err = r.value(v, field, record)
			}
			if !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// value returns the value of a field that follows from the name of a record.
func (r *renewal) value(v *source.Values, field int, record int64) ([]byte, error) {
	sample, err := r.at(record)
	if err != nil || r.job.Schema.Fields[field].Content == tensor.SourceName {
		return []byte(sample.Name), err
	}
	parted, ok := sample.Data.(source.Parted)
	if !ok || !parted.ReadField(v, field) {
		return nil, ErrOther
	}
	return v.Get(field), nil
}

// compared is the number of values that are compared at a time.
const compared = 4096

// same reports whether the dataset already has the values of a field that follows from names.
func (r *renewal) same(ctx context.Context, field int) (bool, error) {
	f := r.job.Schema.Fields[field]
	ds, err := mmapds.Open(r.path, mmapds.WithFields(f.Name))
	if err != nil {
		return false, err
	}
	defer ds.Close()
	v := source.NewValues(len(r.job.Source))
	offsets := make([]int64, compared+1)
	var places []int
	var want []byte
	for first := 0; first < len(r.places); first += compared {
		places, want = places[:0], want[:0]
		var lengths []int64
		for i := first; i < min(first+compared, len(r.places)); i++ {
			if r.places[i] < 0 {
				continue
			}
			value, err := r.value(v, field, int64(i))
			if err != nil {
				return false, err
			}
			places, want, lengths = append(places, int(r.places[i])), append(want, value...), append(lengths, int64(len(value)))
		}
		if len(places) == 0 {
			continue
		}
		got := make([]byte, len(want))
		if f.Ragged {
			if got, err = ds.GatherRagged(ctx, f.Name, places, offsets[:len(places)+1], nil); err == nil &&
				!sameLengths(offsets, lengths) {
				return false, nil
			}
		} else {
			err = ds.Gather(ctx, f.Name, places, got)
		}
		if err != nil || !bytes.Equal(got, want) {
			return false, err
		}
	}
	return true, nil
}

func sameLengths(offsets, lengths []int64) bool {
	for i, n := range lengths {
		if offsets[i+1]-offsets[i] != n {
			return false
		}
	}
	return true
}

// readAhead is the number of samples of a bucket that are read before workers ask for them.
const readAhead = 64

// appendNew reads and appends the records without a place. Places are set only after the commit.
func (r *renewal) appendNew(ctx context.Context, workers int) error {
	var fresh []int64
	for record, place := range r.places {
		if place < 0 {
			fresh = append(fresh, int64(record))
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	w, err := flat.Create(r.path, r.job.Schema, flat.Options{Append: true, Splits: r.base.SplitNames()})
	if err != nil {
		return err
	}
	print := sampleLog{Hash: sha256.New()}
	err = execute.Run(ctx, r.job, workers, 0, r.samples(fresh), func(s *execute.Slot) error {
		if s.Err != nil {
			return fmt.Errorf("%s: %w", s.Sample.Name, s.Err)
		}
		print.enter(s)
		s.Record.Split = s.Sample.Split
		return w.Append(s.Record)
	})
	if err != nil {
		return errors.Join(err, w.Close())
	}
	from := *r.base.Source
	from.Samples, from.Bytes = int64(len(fresh)), print.bytes
	from.Fingerprint = "sha256:" + hex.EncodeToString(print.Sum(nil))
	if _, err := w.Commit(store.Info{Recipe: r.base.Recipe, Source: &from}); err != nil {
		return errors.Join(err, w.Close())
	}
	// After the commit: a failed append leaves places as they were.
	for i, record := range fresh {
		r.places[record] = r.base.Records + int64(i)
	}
	return nil
}

// samples returns the samples of records.
func (r *renewal) samples(records []int64) iter.Seq2[source.Sample, error] {
	all := func(yield func(source.Sample, error) bool) {
		for _, record := range records {
			if !yield(r.at(record)) {
				return
			}
		}
	}
	if !vfs.Mounted(r.records.path) {
		return all
	}
	return source.Prefetch(all, len(r.job.Source), readAhead)
}

// sampleLog is the fingerprint of samples that the manifest stores.
type sampleLog struct {
	hash.Hash
	bytes int64
}

func (l *sampleLog) enter(s *execute.Slot) {
	l.bytes += s.Size
	l.Write(binary.LittleEndian.AppendUint32(nil, s.Print()))
}
