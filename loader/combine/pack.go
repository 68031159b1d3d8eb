package combine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/padding"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// Pack puts records of variable length into rows of one length, several in a row
// and each in one piece, so that a batch of rows has little padding: the packing of
// sequences for language models. The zero value of every field is usable except Length.
type Pack struct {
	Length int // elements of a row; must be > 0
	// fields of variable length with the same number of elements in each record, such as tokens and their targets; none
	// means all of the Source
	Fields []string
	// padding by field, 0 by default. It must be exact in the field's type
	Pad      map[string]float64
	Overflow Overflow // the handling of records that are longer than a row
	// rows that are filled at a time; 0 means 64. More rows need less padding, and combine records that are further
	// apart
	MaxOpenRows int

	// Sizes are the records of datasets that the Source has one after the other, as of a Concat: a row has records of one
	// of them, and the rows of the first come first, so that a sampler.Mix of Packed.Sizes draws rows of each in proportion
	// to weights. None packs records of all together
	Sizes []int

	Sampler sampler.Sampler // in which records are packed, as it is in Epoch with Seed; nil means Sequential
	Seed    uint64          // of Sampler
	Epoch   int             // of Sampler: another number packs other records together
}

// Overflow says how a record that is longer than a row is handled.
type Overflow int

const (
	// OverflowFail makes NewPacked fail, with the number of such records.
	OverflowFail Overflow = iota
	// OverflowTruncate packs the start of the record, as much as fits into a row.
	OverflowTruncate
	// OverflowSplit packs the record as several: each as long as a row, and the rest.
	OverflowSplit
)

// Piece is a part of a record in a row.
type Piece struct {
	Record uint32 // in the Source that was packed
	From   uint32 // the record's first element here
	N      uint32 // how many of its elements
}

// maxPacked is the largest number that a Piece holds.
const maxPacked = math.MaxUint32

// withDefaults returns k with its zero values replaced.
func (k Pack) withDefaults(src loader.Source) Pack {
	if k.MaxOpenRows == 0 {
		k.MaxOpenRows = 64
	}
	if k.Sampler == nil {
		k.Sampler = sampler.Sequential{}
	}
	if len(k.Fields) == 0 {
		for _, s := range src.Specs() {
			if s.Ragged {
				k.Fields = append(k.Fields, s.Name)
			}
		}
	}
	return k
}

// parameters returns the parameters that make these rows differ from other rows packed from the same Source.
func (k Pack) parameters() []any {
	return []any{k.Length, k.Fields, k.Pad, k.Overflow, k.MaxOpenRows, sampler.ID(k.Sampler), k.Seed, k.Epoch, k.Sizes}
}

// validate returns everything that is wrong with k.
func (k Pack) validate(src loader.Source) error {
	var errs []error
	if k.Length < 1 || k.Length > maxPacked {
		errs = append(errs, fmt.Errorf("the Length is %d; it must be from 1 to %d", k.Length, uint32(maxPacked)))
	}
	if k.MaxOpenRows < 1 {
		errs = append(errs, fmt.Errorf("MaxOpenRows is %d; it must be 1 or more", k.MaxOpenRows))
	}
	if k.Overflow < OverflowFail || k.Overflow > OverflowSplit {
		errs = append(errs, fmt.Errorf("Overflow is %d; it must be OverflowFail, OverflowTruncate or OverflowSplit",
			int(k.Overflow)))
	}
	if src.Len() > maxPacked {
		errs = append(errs, fmt.Errorf("the Source has %d records; %d are the most", src.Len(), uint32(maxPacked)))
	}
	if n := len(k.Sizes); n > 0 && (slices.Min(k.Sizes) < 0 || cumulative(k.Sizes)[n-1] != src.Len()) {
		errs = append(errs, fmt.Errorf("the Sizes are %v, and the Source has %d records", k.Sizes, src.Len()))
	}
	if len(k.Fields) == 0 {
		errs = append(errs, errors.New("the Source has no field of variable length"))
	}
	for name := range k.Pad {
		if !slices.Contains(k.Fields, name) {
			errs = append(errs, fmt.Errorf("there is a Pad for the field %q, which is not packed", name))
		}
	}
	return errors.Join(append(errs, sampler.Validate(k.Sampler, src.Len()))...)
}

// fields returns the fields that are packed.
func (k Pack) fields(src loader.Source) ([]packedField, error) {
	var errs []error
	var out []packedField
	for _, name := range k.Fields {
		i := slices.IndexFunc(src.Specs(), func(s tensor.Spec) bool { return s.Name == name && s.Ragged })
		if i < 0 {
			errs = append(errs, fmt.Errorf("the Source has no field %q of variable length", name))
			continue
		}
		in := src.Specs()[i]
		pad, err := padding.Element(in.DType, k.Pad[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("field %q: %w", name, err))
		}
		shape := append(tensor.Shape{k.Length}, in.Shape...)
		out = append(out, packedField{in.RecordBytes(), pad, tensor.Spec{Name: name, DType: in.DType, Shape: shape}})
	}
	for _, name := range []string{Positions, Segments} {
		if slices.Contains(k.Fields, name) {
			errs = append(errs, fmt.Errorf("a field has the name %q, which rows have for what they add", name))
		}
	}
	return out, errors.Join(errs...)
}

// lengths returns how many elements each record has. All packed fields must agree, since a piece is
// the same elements of each.
func (k Pack) lengths(ctx context.Context, src loader.Source) ([]int, error) {
	var lengths []int
	for _, name := range k.Fields {
		other, err := loader.Lengths(ctx, src, name)
		if err != nil {
			return nil, err
		}
		if lengths == nil {
			lengths = other
		}
		for i, n := range other {
			if n != lengths[i] {
				return nil, fmt.Errorf("combine: pack: record %d has %d elements in %q and %d in %q; fields that are packed "+
					"together must have as many", i, lengths[i], k.Fields[0], n, name)
			}
		}
	}
	return lengths, nil
}
