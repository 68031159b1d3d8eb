package raw

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Use makes s read records from a dataset that preprocess --keep-encoded built from all samples. Record i is record
// places[i] of the dataset; nil places means record i. It may be called while records are read, as both have the
// same bytes. The Source closes the dataset, and then held.
func (s *Source) Use(ds *mmapds.Dataset, places []int64, held io.Closer) error {
	// A Source that is being closed must not get a dataset that nobody closes.
	if err := s.Retain(); err != nil {
		return err
	}
	defer s.Release()
	n := s.records.listing.len()
	has := int64(ds.Len())
	if places != nil {
		has = int64(len(places))
	}
	if has != n {
		return fmt.Errorf("%s has %d records, and the source has %d", ds.Files().Path, has, n)
	}
	if slices.ContainsFunc(places, func(p int64) bool { return p < 0 || p >= int64(ds.Len()) }) {
		return fmt.Errorf("%s does not have all records of the source: %w", ds.Files().Path, store.ErrCorrupt)
	}
	// The loader has planned its memory by the specs of the source.
	if got := ds.Specs(); !reflect.DeepEqual(stored(got), stored(s.specs)) {
		return fmt.Errorf("%s has the fields %v, and the source has %v", ds.Files().Path, got, s.specs)
	}
	// Set once and never replaced: readers that loaded the pointer may use the dataset until Close.
	if !s.prepared.CompareAndSwap(nil, &prepared{ds, places, held}) {
		return fmt.Errorf("%s: a dataset is in use already", ds.Files().Path)
	}
	return nil
}

// stored returns specs without the members that a dataset does not store.
func stored(specs []tensor.Spec) []tensor.Spec {
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Meaning = ""
	}
	return specs
}

// prepared is a dataset of all samples, and what is closed after it.
type prepared struct {
	dataset *mmapds.Dataset
	places  []int64 // by record of all samples: its number in the dataset; nil for the same number
	held    io.Closer
}

// at returns the number in the dataset of a record of all samples.
func (p *prepared) at(record int) int {
	if p.places != nil {
		return int(p.places[record])
	}
	return record
}

func (p *prepared) close() error {
	err := p.dataset.Close()
	if p.held != nil {
		err = errors.Join(err, p.held.Close())
	}
	return err
}

// dataset returns the dataset in use, nil if no dataset is in use.
func (s *Source) dataset() *mmapds.Dataset {
	if p := s.prepared.Load(); p != nil {
		return p.dataset
	}
	return nil
}

// located returns the dataset in use and the numbers of the records in the dataset; nil if no dataset is in use.
func (s *Source) located(indices []int) (*mmapds.Dataset, []int) {
	p := s.prepared.Load()
	if p == nil {
		return nil, nil
	}
	if s.records.chosen == nil && p.places == nil {
		return p.dataset, indices
	}
	out := make([]int, len(indices))
	for i, record := range indices {
		out[i] = p.at(s.records.place(record))
	}
	return p.dataset, out
}

// InUse reports whether records are read from a dataset.
func (s *Source) InUse() bool { return s.prepared.Load() != nil }

// piece returns the dataset in use and the number of record a in it, if records [a, b) are consecutive there.
func (s *Source) piece(a, b int) (ds *mmapds.Dataset, first int) {
	p := s.prepared.Load()
	if p == nil || a < 0 || b < a || b > s.records.len() {
		return nil, 0
	}
	if s.records.chosen == nil && p.places == nil || a == b {
		return p.dataset, a
	}
	first = p.at(s.records.place(a))
	for i := a + 1; i < b; i++ {
		if p.at(s.records.place(i)) != first+i-a {
			return nil, 0
		}
	}
	return p.dataset, first
}

// Warm reads records [a, b) of the dataset in use into memory.
func (s *Source) Warm(field string, a, b int) error {
	if ds, first := s.piece(a, b); ds != nil {
		return ds.Warm(field, first, first+b-a)
	}
	return nil
}

// IsWarm reports whether records [a, b) are in memory already, in the map of the dataset in use.
func (s *Source) IsWarm(field string, a, b int) bool {
	ds, first := s.piece(a, b)
	return ds != nil && ds.IsWarm(field, first, first+b-a)
}

// Fault returns why a read at addr failed, if addr is in the memory of the dataset in use.
func (s *Source) Fault(addr uintptr) error {
	if ds := s.dataset(); ds != nil {
		return ds.Fault(addr)
	}
	return nil
}
