package raw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
)

// records is the samples of a source as records, by number. There are three numberings: samples in the order of the
// source; places, the records of a dataset of all samples, where one split follows the other (order maps them to
// samples); and records, which are the places of the chosen split (chosen maps them to places).
type records struct {
	path    string
	outside bool // files that the source names may be anywhere
	info    source.Info
	listing listing
	filed   source.Filed // nil unless samples come from files, one file after the other
	order   []int64      // sample by place; nil if both are the same
	chosen  []int64      // place by record, ascending; nil for all places
	job     *execute.Job
	about   string    // what id depends on besides the names of samples: see describe
	id      string    // the identity, which takes a while to compute
	readers sync.Pool // of *reader
}

// len returns the number of records.
func (l *records) len() int {
	if l.chosen != nil {
		return len(l.chosen)
	}
	return int(l.listing.len())
}

// place returns the place of a record.
func (l *records) place(record int) int {
	if l.chosen != nil {
		return int(l.chosen[record])
	}
	return record
}

// sample returns the sample of a record.
func (l *records) sample(record int) (source.Sample, error) {
	if record < 0 || record >= l.len() {
		return source.Sample{}, fmt.Errorf("raw: record %d is out of range: there are %d", record, l.len())
	}
	return l.at(int64(l.place(record)))
}

// at returns the sample at a place.
func (l *records) at(place int64) (source.Sample, error) {
	if l.order != nil {
		place = l.order[place]
	}
	return l.listing.sample(place)
}

// nameAt returns the name of the sample at a place.
func nameAt(l *records, place int64) (string, error) {
	if l.order != nil {
		place = l.order[place]
	}
	return l.listing.name(place)
}

// sort sets order: the splits of the source follow each other, as in a dataset that preprocess writes.
func (l *records) sort() error {
	if len(l.info.Splits) == 0 {
		return nil
	}
	of := make(map[string][]int64)
	for i := range l.listing.len() {
		s, err := l.listing.sample(i)
		if err != nil {
			return err
		}
		of[s.Split] = append(of[s.Split], i)
	}
	for _, split := range l.info.Splits {
		l.order = append(l.order, of[split]...)
	}
	if int64(len(l.order)) != l.listing.len() {
		return fmt.Errorf("some of its %s are in none of the splits %s", l.info.Unit, source.Enumerate(l.info.Splits, 8))
	}
	return nil
}

// splits returns the number of samples in each split.
func (l *records) splits() ([]int64, error) {
	counts := make([]int64, len(l.info.Splits))
	if len(counts) == 0 {
		return nil, nil
	}
	for i := range l.listing.len() {
		s, err := l.listing.sample(i)
		if err != nil {
			return nil, err
		}
		if at := slices.Index(l.info.Splits, s.Split); at >= 0 {
			counts[at]++
		}
	}
	return counts, nil
}

// choose restricts the records to a split: a split of the source, or with shares a split by names.
func (l *records) choose(split, text string) error {
	shares, err := samples.ParseSplit(text)
	if err != nil {
		return fmt.Errorf("shares of splits: %w", err)
	}
	names := l.info.Splits
	if shares != nil {
		names = nil
		for _, s := range shares {
			names = append(names, s.Name)
		}
	}
	switch {
	case split == "":
		return nil
	case shares == nil && len(l.info.Lists) > 0 && !slices.Contains(names, split):
		for _, list := range l.info.Lists {
			names = append(names, list.Name)
		}
		return fmt.Errorf("split %q: the splits are %s", split, source.Enumerate(names, 8))
	case len(names) == 0:
		return fmt.Errorf("split %q: it has no splits; give their shares (train=0.8,val=0.2) as splits, "+
			"or load all records", split)
	case !slices.Contains(names, split):
		return fmt.Errorf("split %q: the splits are %s", split, source.Enumerate(names, 8))
	}
	by := samples.NewSplitter(shares, samples.NoStrata)
	// Not nil, which would mean all records.
	l.chosen = []int64{}
	for i := range l.listing.len() {
		s, err := l.at(i)
		if err != nil {
			return err
		}
		in := s.Split
		if shares != nil {
			d := samples.Content(1, func(int) bool { return true }, nil, func(int) []byte { return []byte(s.Name) })
			in = by.Choose(d, d, 0)
		}
		if in == split {
			l.chosen = append(l.chosen, i)
		}
	}
	if len(l.chosen) == 0 {
		return fmt.Errorf("split %q: it has no records", split)
	}
	return nil
}

// describe returns the parts of an identity besides the names of samples.
func describe(l *records, split, shares string) ([]byte, error) {
	return json.Marshal([]any{l.info.Kind, l.job.Schema.Fields, split, shares})
}

// identity returns a digest of the names of all samples, of fields and classes, and of the split. Zero bytes end
// the names, so that no two lists of names are one text.
func (l *records) identity(split, shares string) (string, error) {
	about, err := describe(l, split, shares)
	if err != nil {
		return "", err
	}
	if string(about) == l.about { // a million names take a while
		return l.id, nil
	}
	h, names := sha256.New(), make([]byte, 0, 1<<16)
	h.Write(about)
	for i := range l.listing.len() {
		name, err := l.listing.name(i)
		if err != nil {
			return "", err
		}
		if names = append(append(names, name...), 0); len(names) > cap(names)/2 {
			h.Write(names)
			names = names[:0]
		}
	}
	h.Write(names)
	return "raw/" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// readRanges fills dst with the values of a field, in one read for each run of consecutive samples. It returns
// false if the source cannot read the field in ranges, or if an index is out of range.
func (l *records) readRanges(name string, indices []int, dst []byte) (bool, error) {
	ranged, at := l.ranged(name)
	if ranged == nil || len(indices) == 0 {
		return false, nil
	}
	size := len(dst) / len(indices)
	for i := 0; i < len(indices); {
		first, n := l.number(indices[i]), 1
		// Batches of a sequential sampler are one run; shuffled ones are runs of one record.
		for i+n < len(indices) && l.number(indices[i+n]) == first+int64(n) {
			n++
		}
		if first < 0 || first+int64(n) > l.listing.len() {
			return false, nil // the read of single records says which
		}
		if err := ranged.ReadRange(at, first, first+int64(n), dst[i*size:(i+n)*size]); err != nil {
			return true, &RecordError{indices[i], ranged.Info().Name, err}
		}
		i += n
	}
	return true, nil
}

// ranged returns the source and the position of a field in it, if the source can read consecutive values of the
// field in one call; otherwise nil.
func (l *records) ranged(name string) (source.Ranged, int) {
	src, ok := l.listing.(indexed)
	at := l.job.Schema.Index(name)
	if !ok || at < 0 {
		return nil, 0
	}
	if ranged, ok := src.Indexed.(source.Ranged); ok && ranged.InRanges(at) {
		return ranged, at
	}
	return nil, 0
}

// number returns the number of the sample of a record; -1 if the record does not exist.
func (l *records) number(record int) int64 {
	if record < 0 || record >= l.len() {
		return -1
	}
	place := int64(l.place(record))
	if l.order != nil {
		return l.order[place]
	}
	return place
}

// each calls f with the value of a field in each record. The value is valid during f.
func (l *records) each(ctx context.Context, name string, indices []int, f func(i int, value []byte) error) error {
	at := l.job.Schema.Index(name)
	if at < 0 {
		return fmt.Errorf("raw: there is no field %q", name)
	}
	r, _ := l.readers.Get().(*reader)
	if r == nil {
		r = newReader(l.job)
	}
	defer l.readers.Put(r)
	for i, record := range indices {
		if err := ctx.Err(); err != nil {
			return err
		}
		sample, err := l.sample(record)
		if err == nil {
			err = r.read(sample, at)
		}
		if err != nil {
			return l.failed(record, err)
		}
		if err := f(i, r.slot.Record.Values[at]); err != nil {
			return err
		}
	}
	return nil
}

// failed returns the error of a record with its name.
func (l *records) failed(record int, err error) error {
	sample, none := l.sample(record)
	if none != nil {
		return errors.Join(err, none)
	}
	if errors.Is(err, source.ErrNoImage) {
		err = fmt.Errorf("%w; of the type images, a record may have none: %s", err, column.WithImages(l.info.Fields))
	}
	return &RecordError{record, sample.Name, err}
}

// RecordError is the error of a record that cannot be read.
type RecordError struct {
	record int
	name   string
	err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("record %d (%s): %v", e.record, e.name, e.err)
}

// Record returns the number of the record.
func (e *RecordError) Record() int { return e.record }

func (e *RecordError) Unwrap() error { return e.err }

// reader makes records. It serves one goroutine at a time and keeps its memory.
type reader struct {
	worker *execute.Worker
	slot   execute.Slot
	values *source.Values
}

func newReader(j *execute.Job) *reader {
	return &reader{
		worker: execute.NewWorker(j), slot: execute.Slot{Record: store.NewRecord(j.Schema)},
		values: source.NewValues(len(j.Source)),
	}
}

// read makes the record of a sample, or if the sample allows it, only the field that is asked for.
func (r *reader) read(sample source.Sample, field int) error {
	if d, ok := sample.Data.(source.Parted); ok && d.ReadField(r.values, field) {
		values := r.slot.Record.Values
		values[field] = append(values[field][:0], r.values.Get(field)...)
		return nil
	}
	r.slot.Sample = sample
	r.worker.Load(&r.slot)
	// A sample can hold the bytes of an archive's member, which would stay until the reader's next use.
	r.slot.Sample = source.Sample{}
	return r.slot.Err
}
