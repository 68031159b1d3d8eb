package raw

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ErrClosed is returned by methods of a Source after Close.
var ErrClosed = errors.New("raw: closed")

// Source is a raw source as a loader.Source. Records are read when they are asked for. Any number of goroutines may
// use it.
type Source struct {
	src      source.Source
	place    *place
	records  records
	declared Options      // see Declared
	schema   store.Schema // of the selected fields
	specs    []tensor.Spec
	id       string
	leases   leases
	head     *head     // decodes image files; nil if they stay files
	idle     sync.Pool // of *decoding

	prepared atomic.Pointer[prepared] // nil if records are read from the source
}

// Len returns the number of records.
func (s *Source) Len() int { return s.records.len() }

// Specs returns the specs of the fields. The caller must not change them.
func (s *Source) Specs() []tensor.Spec { return s.specs }

// Schema returns the fields with everything that the source knows about them.
func (s *Source) Schema() store.Schema { return s.schema }

// Info describes the source.
func (s *Source) Info() source.Info { return s.records.info }

// Path returns the path or URL that was opened.
func (s *Source) Path() string { return s.place.text }

// Name returns the path or URL for messages, without secrets.
func (s *Source) Name() string { return s.place.name() }

// Declared returns the options besides Fields and Head with which Open lists the same samples of the path again: the
// declarations of records and columns, and the split if it is a list of a file.
func (s *Source) Declared() Options { return s.declared }

// Mounted returns the path at which this process can read the source until Close. The bucket of a URL is mounted at
// a path that only this process knows.
func (s *Source) Mounted() string { return s.place.path }

// Keep stores what is fetched from a bucket in a folder, which processes share, and reads it from there later.
func (s *Source) Keep(folder *os.Root) { s.place.keep(folder) }

// Classes returns the names of the values 0, 1, ... of a field; nil if the field has no names. The caller must not
// change the slice.
func (s *Source) Classes(field string) []string {
	if i := s.schema.Index(field); i >= 0 {
		return s.schema.Fields[i].Classes
	}
	return nil
}

// Splits returns the number of samples in each split of the source.
func (s *Source) Splits() ([]int64, error) { return s.records.splits() }

// ID identifies the records: a digest of the names of all samples, of the fields and classes, and of the split.
// Contents are not part of it, so a changed file keeps its ID; see Fingerprint.
func (s *Source) ID() string { return s.id }

// SourceName returns the name of the sample of a record: the path of its file, the member of its archive, the row
// of its table.
func (s *Source) SourceName(_ context.Context, record int) (string, error) {
	sample, err := s.records.sample(record)
	return sample.Name, err
}

// Location returns "": only the name is known.
func (s *Source) Location(string, int) string { return "" }

// DescribeReads says that records are read from the source, or how they are read from the dataset in use.
func (s *Source) DescribeReads(field string) (how, why string, resident float64) {
	if ds := s.dataset(); ds != nil {
		return ds.DescribeReads(field)
	}
	return "raw", fmt.Sprintf("%s of a source (%s) that is not prepared", s.records.info.Unit, s.records.info.Kind), -1
}

// Contiguous reports whether Slice can read records [a, b) in one piece: from the dataset in use, or from a source
// that reads consecutive samples together.
func (s *Source) Contiguous(field string, a, b int) bool {
	if ds, first := s.piece(a, b); ds != nil {
		return ds.Contiguous(field, first, first+b-a)
	}
	ranged, _ := s.records.ranged(field)
	return ranged != nil && 0 <= a && a < b && b <= s.Len() && s.records.order == nil && s.records.chosen == nil
}

// Prefetch begins to fetch records from a bucket, in the background. Local records are not prefetched: workers read
// them in parallel anyway.
func (s *Source) Prefetch(field string, a, b int) error {
	if ds, first := s.piece(a, b); ds != nil {
		return ds.Prefetch(field, first, first+b-a)
	}
	if !s.place.early || s.prepared.Load() != nil {
		return nil
	}
	for i := a; i < b; i++ {
		s.place.fetch(func() {
			ignore := func(int, []byte) error { return nil }
			_ = s.records.each(context.Background(), field, []int{i}, ignore) // the read that follows reports what is wrong
		})
	}
	return nil
}

// Retain takes a lease. Close waits until it is released.
func (s *Source) Retain() error { return s.leases.take() }

// Release gives a lease back.
func (s *Source) Release() { s.leases.giveBack() }

// Guard calls f, which reads memory of the dataset in use, and returns memory faults in it as errors.
func (s *Source) Guard(f func() error) error {
	if ds := s.dataset(); ds != nil {
		return ds.Guard(f)
	}
	return f()
}

// Close waits for all leases, and closes the source and the dataset in use.
func (s *Source) Close() error {
	// Another call has closed it already.
	if !s.leases.end() {
		return nil
	}
	// Records that are fetched ahead read from src, so they end first.
	s.place.stop()
	err := s.src.Close()
	s.place.close()
	if p := s.prepared.Load(); p != nil {
		err = errors.Join(err, p.close())
	}
	return err
}

// Gather reads records of a field with a fixed size.
func (s *Source) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	// A prepared dataset has the same records, decoded or not, and answers faster.
	if ds, places := s.located(indices); ds != nil {
		return ds.Gather(ctx, field, places, dst)
	}
	if done, err := s.records.readRanges(field, indices, dst); done {
		return err
	}
	return s.each(ctx, field, indices, func(i int, value []byte) error {
		size := len(dst) / len(indices)
		if len(value) != size {
			return fmt.Errorf("raw: field %q is of variable length", field)
		}
		copy(dst[i*size:], value)
		return nil
	})
}

// GatherRagged reads records of a field of variable length.
func (s *Source) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) (
	[]byte, error) {
	if ds, places := s.located(indices); ds != nil {
		return ds.GatherRagged(ctx, field, places, offsets, dst)
	}
	at, row := 0, rowBytes(s.schema, field)
	offsets[0] = 0
	err := s.each(ctx, field, indices, func(i int, value []byte) error {
		dst = append(dst[:at], value...)
		at += len(value)
		offsets[i+1] = int64(at / row)
		return nil
	})
	return dst[:min(at, len(dst))], err
}

// each calls f with the value of a field in each record, decoded if Decode was called. The value is valid during f.
func (s *Source) each(ctx context.Context, field string, indices []int, f func(i int, value []byte) error) error {
	// Only the field of images is decoded; all other fields have the values of the source.
	if s.head == nil || field != s.head.stored.Name {
		return s.records.each(ctx, field, indices, f)
	}
	d, _ := s.idle.Get().(*decoding)
	if d == nil {
		d = newDecoding(s.head)
	}
	defer s.idle.Put(d)
	return s.records.each(ctx, field, indices, func(i int, file []byte) error {
		pixels, err := d.do(file)
		if err != nil {
			return s.records.failed(indices[i], err)
		}
		return f(i, pixels)
	})
}

// Lengths sets offsets to the cumulative numbers of rows of a ragged field. It has to read the records.
func (s *Source) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	if ds, places := s.located(indices); ds != nil {
		return ds.Lengths(ctx, field, places, offsets)
	}
	row := rowBytes(s.schema, field)
	offsets[0] = 0
	return s.each(ctx, field, indices, func(i int, value []byte) error {
		offsets[i+1] = offsets[i] + int64(len(value)/row)
		return nil
	})
}

// Slice returns records [a, b) of a field with a fixed size: a view of the dataset in use, or new memory.
func (s *Source) Slice(field string, a, b int) (tensor.View, error) {
	if ds, first := s.piece(a, b); ds != nil {
		return ds.Slice(field, first, first+b-a)
	}
	i := s.schema.Index(field)
	if i < 0 || a < 0 || b < a || b > s.Len() {
		return tensor.View{}, fmt.Errorf("raw: records [%d, %d) of field %q: there are %d", a, b, field, s.Len())
	}
	dst := make([]byte, (b-a)*s.specs[i].RecordBytes())
	if err := s.Gather(context.Background(), field, consecutive(a, b), dst); err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(s.specs[i], b-a, dst), nil
}

// SliceRagged is Slice for a ragged field, with the offsets of its records in rows.
func (s *Source) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	if ds, first := s.piece(a, b); ds != nil {
		return ds.SliceRagged(field, first, first+b-a, offsets)
	}
	i := s.schema.Index(field)
	if i < 0 || a < 0 || b < a || b > s.Len() {
		return tensor.View{}, fmt.Errorf("raw: records [%d, %d) of field %q: there are %d", a, b, field, s.Len())
	}
	rows, err := s.GatherRagged(context.Background(), field, consecutive(a, b), offsets, nil)
	if err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(s.specs[i], int(offsets[b-a]), rows), nil
}

// rowBytes returns the bytes of a row of a ragged field.
func rowBytes(schema store.Schema, field string) int {
	if i := schema.Index(field); i >= 0 {
		return max(1, schema.Fields[i].RecordBytes())
	}
	return 1
}

func consecutive(a, b int) []int {
	list := make([]int, b-a)
	for i := range list {
		list[i] = a + i
	}
	return list
}
