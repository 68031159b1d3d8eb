package combine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// Slice returns records [a, b): a view if they are consecutive in a part, otherwise a copy.
func (r *route) Slice(field string, a, b int) (tensor.View, error) {
	s, err := r.at(field, a, b)
	if err != nil {
		return tensor.View{}, err
	}
	if s.n < b-a {
		return copied(r, field, a, b)
	}
	v, err := s.Slice(s.field, s.first, s.first+s.n)
	if err != nil {
		err = r.renumber(err, s.segment, a, b)
	}
	return v, err
}

// SliceRagged returns the rows of records [a, b): a view if they are consecutive in a part,
// otherwise a copy.
func (r *route) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	s, err := r.at(field, a, b)
	if err != nil {
		return tensor.View{}, err
	}
	if s.n < b-a {
		return copiedRagged(r, r.specs[fieldOf(r.specs, field)], a, b, offsets)
	}
	v, err := s.can.Ragged.SliceRagged(s.field, s.first, s.first+s.n, offsets)
	return v, r.renumber(err, s.segment, a, b)
}

// Prefetch passes the hint on.
func (r *route) Prefetch(field string, a, b int) error {
	return r.each(field, a, b, (*member).Prefetch)
}

// Warm makes the parts read records into memory.
func (r *route) Warm(field string, a, b int) error { return r.each(field, a, b, (*member).warm) }

// IsWarm reports whether records [a, b) are consecutive in memory that needs no reading.
func (r *route) IsWarm(field string, a, b int) bool {
	s, ok := r.whole(field, a, b)
	return ok && s.can.Mapped != nil && s.can.Mapped.IsWarm(s.field, s.first, s.first+s.n)
}

// Contiguous reports whether records [a, b) are one piece of memory of a part.
func (r *route) Contiguous(field string, a, b int) bool {
	s, ok := r.whole(field, a, b)
	return ok && s.can.Contiguous(s.field, s.first, s.first+s.n)
}

// Fault asks the part whose memory contains addr why a read there failed.
func (r *route) Fault(addr uintptr) error {
	i, err := r.fault(addr)
	return r.renumber(err, i%len(r.ends), 0, r.rows.n)
}

// Intact asks every part whether its files are whole.
func (r *route) Intact() error {
	i, err := r.intact()
	return r.renumber(err, i%len(r.ends), 0, r.rows.n)
}

// ChunkShape returns the chunk shape of a field in its part. It is nil for selected records and for
// several parts, whose chunks do not form one grid.
func (r *route) ChunkShape(field string) []int {
	f, err := r.field(field)
	if err != nil || !r.same() || r.members[f.part].can.Grid == nil {
		return nil
	}
	return r.members[f.part].can.Grid.ChunkShape(f.name)
}

// ReadChunk makes the part decode a chunk.
func (r *route) ReadChunk(ctx context.Context, field string, at []int, dst []byte) error {
	f, err := r.field(field)
	if err != nil || !r.same() || r.members[f.part].can.Grid == nil {
		return fmt.Errorf("combine: %s: field %q has no chunks", r.kind, field)
	}
	return r.members[f.part].can.Grid.ReadChunk(ctx, f.name, at, dst)
}

// Location asks the part that has a record where the record is stored.
func (r *route) Location(field string, record int) string {
	s, ok := r.whole(field, record, record+1)
	if !ok || s.can.Described == nil {
		return ""
	}
	return s.can.Described.Location(s.field, s.first)
}

// SourceName returns the first source name that one of the record's parts knows, in the order of
// the parts.
func (r *route) SourceName(ctx context.Context, record int) (string, error) {
	number, _ := r.rows.at(record, record+1)
	segment := r.segment(number)
	for i := segment; i < len(r.members); i += len(r.ends) {
		if name, err := r.members[i].can.SourceName(ctx, number-r.start(segment)); name != "" || err != nil {
			return name, err
		}
	}
	return "", nil
}

// DescribeReads returns how the parts of a field read it, and which share of all their records is
// in memory.
func (r *route) DescribeReads(field string) (how, why string, resident float64) {
	f, err := r.field(field)
	if err != nil {
		return "", "", -1
	}
	if len(r.ends) == 1 {
		return r.members[f.part].describeReads(f.name)
	}
	var hows, whys []string
	for i := range r.members {
		m := &r.members[i]
		h, w, in := m.describeReads(field)
		if m.can.Described == nil {
			return h, w, in
		}
		if !slices.Contains(hows, h) {
			hows = append(hows, h)
		}
		whys = append(whys, fmt.Sprintf("source %d: %s", i, w))
		if in < 0 || resident < 0 {
			resident = -1
		} else if r.Len() > 0 {
			resident += in * float64(m.Len()) / float64(r.Len())
		}
	}
	return strings.Join(hows, " and "), strings.Join(whys, "; "), resident
}

// Classes returns the class names of a field in the first part that knows them. NewConcat has checked that all agree.
func (r *route) Classes(field string) []string {
	f, err := r.field(field)
	if err != nil {
		return nil
	}
	for _, m := range r.members[f.part : f.part+len(r.ends)] {
		if m.can.Classed != nil {
			return m.can.Classed.Classes(f.name)
		}
	}
	return nil
}

// Bounds returns the limits of a field in the parts that have records [first, end). For selected
// records they are the limits of all of the part's records, which is correct, if wide.
func (r *route) Bounds(field string, first, end int) (low, high float64, ok bool) {
	known := true
	add := func(p *member, name string, a, b int) error {
		if p.can.Bounded == nil {
			known = false
			return nil
		}
		l, h, is := p.can.Bounded.Bounds(name, a, b)
		known = known && is
		if !ok || l < low {
			low = l
		}
		if !ok || h > high {
			high = h
		}
		ok = true
		return nil
	}
	s, err := r.at(field, 0, 0)
	switch {
	case err != nil:
	case r.rows.all():
		err = r.each(field, first, end, add)
	default:
		err = add(s.member, s.field, 0, s.Len())
	}
	return low, high, ok && known && err == nil
}

// Decoded returns how many bytes of chunks all parts together have decoded.
func (r *route) Decoded() (bytes int64) {
	for _, m := range r.members {
		if m.can.Chunks != nil {
			bytes += m.can.Chunks.Decoded()
		}
	}
	return bytes
}
