package combine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/padding"
	"github.com/penstock/penstock/tensor"
)

// Names of two fields that NewPacked adds to the packed fields, both int32 of shape
// (Length). Positions count the elements of each piece from 0; Segments number the pieces of
// a row from 1. Both are 0 in the padding.
const (
	Positions = "positions"
	Segments  = "segments"
)

// Packed is a Source whose records are rows of one length, each with several records of
// another Source: see Pack. Every Sampler, World, State and Transform works on rows as on any
// records; a State identifies a Packed by its parameters and the Source's ID, and Resume takes no
// longer than for other Sources.
//
// NewPacked plans the rows from the lengths alone. To put other records
// together in every epoch, make a Packed and a Loader for each, with another Pack.Epoch.
//
// A Loader copies rows, as no row is one piece of the Source's memory. Methods may be called
// by several goroutines.
type Packed struct {
	named // the Source alone
	made
	plan    *plan
	fields  []packedField
	specs   []tensor.Spec
	scratch sync.Pool
}

type packedField struct {
	size int    // bytes of an element
	pad  []byte // of one number
	spec tensor.Spec
}

// packScratch is memory that one call borrows and returns.
type packScratch struct {
	indices []int
	offsets []int64
	rows    []byte
}

// NewPacked packs the records of src. It reads the lengths of all records and looks at up to
// Pack.MaxOpenRows rows for each, a second or less for a million. It takes 12 bytes a piece and 8 a
// row, and another 8 bytes a record while it works.
func NewPacked(ctx context.Context, src loader.Source, k Pack) (*Packed, error) {
	k = k.withDefaults(src)
	fields, err := k.fields(src)
	if err := errors.Join(k.validate(src), err); err != nil {
		return nil, fmt.Errorf("combine: pack: %w", err)
	}
	of, err := newMember(src)
	if err != nil {
		return nil, fmt.Errorf("combine: pack: %w", err)
	}
	lengths, err := k.lengths(ctx, src)
	if err != nil {
		return nil, err
	}
	plan, err := newPlan(k, lengths)
	if err != nil {
		return nil, fmt.Errorf("combine: pack: %w", err)
	}
	p := &Packed{plan: plan, fields: fields}
	p.kind, p.members, p.how = "packed", members{of}, k.parameters
	for _, f := range fields {
		p.specs = append(p.specs, f.spec)
	}
	for _, name := range []string{Positions, Segments} {
		p.specs = append(p.specs, tensor.Spec{Name: name, DType: tensor.Int32, Shape: tensor.Shape{k.Length}})
	}
	p.scratch.New = func() any { return new(packScratch) }
	return p, nil
}

// Len returns the number of rows.
func (p *Packed) Len() int { return len(p.plan.ends) }

// Specs returns the packed fields with the shape (Length, element shape...), Positions and
// Segments.
func (p *Packed) Specs() []tensor.Spec { return p.specs }

// Sizes returns the number of rows of each dataset of Pack.Sizes; nil if Pack.Sizes is nil.
func (p *Packed) Sizes() []int {
	if len(p.plan.pack.Sizes) == 0 {
		return nil
	}
	sizes, last := slices.Clone(p.plan.bounds), 0
	for i, end := range sizes {
		sizes[i], last = end-last, end
	}
	return sizes
}

// of returns the Source that is packed.
func (p *Packed) of() *member { return &p.members[0] }

// Pieces returns the pieces of a row. The caller must not change them.
func (p *Packed) Pieces(row int) []Piece { return p.plan.row(row) }

// Used returns the part of all rows that is not padding, from 0 to 1.
func (p *Packed) Used() float64 {
	return float64(p.plan.used) / float64(max(1, p.Len()*p.plan.pack.Length))
}

// CuSeqlens appends to dst the positions at which the pieces of some rows start, if the rows are one after the
// other as in a batch, and the end of the last piece: cu_seqlens of attention kernels. Padding counts as a
// piece, so that the last number is len(rows)*Length.
//
//	ends = packed.CuSeqlens(ends[:0], b.Indices())
func (p *Packed) CuSeqlens(dst []int32, rows []int) []int32 {
	dst = append(dst, 0)
	length := p.plan.pack.Length
	for i, row := range rows {
		end := i * length
		for _, piece := range p.plan.row(row) {
			end += int(piece.N)
			dst = append(dst, int32(end))
		}
		if end < (i+1)*length {
			dst = append(dst, int32((i+1)*length))
		}
	}
	return dst
}

var _ interface {
	loader.ChunkedSource
	loader.RemoteSource
	loader.DescribedSource
	loader.ClassedSource
	loader.Identifier
} = (*Packed)(nil)

// packs reports whether a field of the rows comes from the Source.
func packs(field string) bool { return field != Positions && field != Segments }

// Slice returns rows [a, b) in new memory.
func (p *Packed) Slice(field string, a, b int) (tensor.View, error) { return copied(p, field, a, b) }

// field returns the index of a field in specs.
func (p *Packed) field(name string) (int, error) {
	if i := fieldOf(p.specs, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("combine: pack: rows have no field %q", name)
}

// Gather makes rows.
func (p *Packed) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	f, err := p.field(field)
	if err != nil {
		return err
	}
	size := p.specs[f].RecordBytes()
	for i, r := range indices {
		if err := p.row(ctx, f, p.plan.row(r), dst[i*size:(i+1)*size]); err != nil {
			return recordError{err, r, fmt.Sprint("row ", r)}
		}
	}
	return nil
}

// row makes one row of a field from its pieces.
func (p *Packed) row(ctx context.Context, field int, pieces []Piece, dst []byte) error {
	switch {
	case field < len(p.fields):
		return p.values(ctx, &p.fields[field], pieces, dst)
	case p.specs[field].Name == Positions:
		count(pieces, dst, func(_, at int) int { return at })
	default:
		count(pieces, dst, func(k, _ int) int { return k + 1 })
	}
	return nil
}

// count fills a row of int32: of returns the number for element at of piece k. The padding is 0.
func count(pieces []Piece, dst []byte, of func(k, at int) int) {
	for k, piece := range pieces {
		for at := range int(piece.N) {
			binary.NativeEndian.PutUint32(dst, uint32(of(k, at)))
			dst = dst[4:]
		}
	}
	clear(dst)
}

// values makes a row of a packed field. Consecutive whole records are gathered by one call,
// straight into the row; a part of a record is copied from scratch memory.
func (p *Packed) values(ctx context.Context, f *packedField, pieces []Piece, dst []byte) error {
	s := p.scratch.Get().(*packScratch)
	defer p.scratch.Put(s)
	for len(pieces) > 0 {
		n, bytes := 0, 0 // whole records at the front
		for n < len(pieces) && isRecord(pieces[n], p.plan.pack.Length) {
			bytes += int(pieces[n].N) * f.size
			n++
		}
		var err error
		if n > 0 {
			err = p.records(ctx, f, s, pieces[:n], dst[:bytes:bytes])
		} else {
			n, bytes = 1, int(pieces[0].N)*f.size
			err = p.part(ctx, f, s, pieces[0], dst[:bytes])
		}
		if err != nil {
			return err
		}
		pieces, dst = pieces[n:], dst[bytes:]
	}
	padding.Fill(dst, f.pad)
	return nil
}

// isRecord reports whether a piece is certainly a whole record. A piece as long as a row may be the
// start of a longer record.
func isRecord(piece Piece, length int) bool {
	return piece.From == 0 && int(piece.N) < length
}

// records gathers pieces that are whole records. The Source is checked to return the lengths that
// were packed: a dataset that changed would shift every later piece.
func (p *Packed) records(ctx context.Context, f *packedField, s *packScratch, pieces []Piece, dst []byte) error {
	s.indices = s.indices[:0]
	for _, piece := range pieces {
		s.indices = append(s.indices, int(piece.Record))
	}
	s.offsets = slices.Grow(s.offsets[:0], len(pieces)+1)[:len(pieces)+1]
	got, err := p.of().can.Ragged.GatherRagged(ctx, f.spec.Name, s.indices, s.offsets, dst)
	if err == nil && len(got) != len(dst) {
		err = fmt.Errorf("records %v have %d bytes, and had %d when they were packed", s.indices, len(got), len(dst))
	}
	return err
}

// part copies a piece of a record that may be longer than the piece.
func (p *Packed) part(ctx context.Context, f *packedField, s *packScratch, piece Piece, dst []byte) (err error) {
	s.indices = append(s.indices[:0], int(piece.Record))
	s.offsets = slices.Grow(s.offsets[:0], 2)[:2]
	s.rows, err = p.of().can.Ragged.GatherRagged(ctx, f.spec.Name, s.indices, s.offsets, s.rows)
	if err != nil {
		return err
	}
	from := int(piece.From) * f.size
	if from+len(dst) > len(s.rows) {
		return fmt.Errorf("record %d has %d bytes, and had more when it was packed", piece.Record, len(s.rows))
	}
	copy(dst, s.rows[from:])
	return nil
}

// Prefetch passes the hint on for the records of rows [a, b).
func (p *Packed) Prefetch(field string, a, b int) error {
	if !packs(field) {
		return nil
	}
	for row := a; row < b; row++ {
		for _, piece := range p.plan.row(row) {
			if err := p.of().Prefetch(field, int(piece.Record), int(piece.Record)+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Classes returns the names of a packed field's values.
func (p *Packed) Classes(field string) []string {
	if f, err := p.field(field); err != nil || f >= len(p.fields) {
		return nil
	}
	return p.of().classes(field)
}
