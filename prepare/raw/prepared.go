package raw

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/penstock/penstock/mmapds"
)

// Use has records read from a dataset from now on, which preprocess --keep-encoded made of all samples. It may be
// called while records are read: they have the same bytes in both. The Source closes the dataset, and then held.
func (s *Source) Use(ds *mmapds.Dataset, held io.Closer) error {
	if err := s.Retain(); err != nil {
		return err
	}
	defer s.Release()
	if n := s.records.listing.len(); int64(ds.Len()) != n {
		return fmt.Errorf("%s has %d records, and the source has %d", ds.Files().Path, ds.Len(), n)
	}
	if got := ds.Specs(); !reflect.DeepEqual(got, s.specs) {
		return fmt.Errorf("%s has the fields %v, and the source has %v", ds.Files().Path, got, s.specs)
	}
	if !s.prepared.CompareAndSwap(nil, &prepared{ds, held}) {
		return fmt.Errorf("%s: a dataset is in use already", ds.Files().Path)
	}
	return nil
}

// prepared is a dataset of all samples, and what is closed after it.
type prepared struct {
	dataset *mmapds.Dataset
	held    io.Closer
}

func (p *prepared) close() error {
	err := p.dataset.Close()
	if p.held != nil {
		err = errors.Join(err, p.held.Close())
	}
	return err
}

// dataset returns the dataset in use; nil if there is none.
func (s *Source) dataset() *mmapds.Dataset {
	if p := s.prepared.Load(); p != nil {
		return p.dataset
	}
	return nil
}

// InUse reports whether records are read from a dataset.
func (s *Source) InUse() bool { return s.prepared.Load() != nil }

// whole returns the dataset in use if its records are those of the Source; nil if not.
func (s *Source) whole() *mmapds.Dataset {
	if s.records.chosen != nil {
		return nil
	}
	return s.dataset()
}

// Warm reads records [a, b) of the dataset in use into memory.
func (s *Source) Warm(field string, a, b int) error {
	if ds := s.whole(); ds != nil {
		return ds.Warm(field, a, b)
	}
	return nil
}

// IsWarm reports whether records [a, b) are memory of the dataset in use that needs no reading.
func (s *Source) IsWarm(field string, a, b int) bool {
	ds := s.whole()
	return ds != nil && ds.IsWarm(field, a, b)
}

// Fault returns why a read at addr failed, if addr is memory of the dataset in use.
func (s *Source) Fault(addr uintptr) error {
	if ds := s.dataset(); ds != nil {
		return ds.Fault(addr)
	}
	return nil
}
