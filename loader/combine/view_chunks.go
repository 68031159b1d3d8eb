package combine

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/sampler"
)

// Chunks returns which chunks hold the records. All fields must come from one Source, because one
// order cannot follow the chunks of two. A derived field counts as the fields of its expression.
func (v *View) Chunks(fields []string, records []int) (sampler.Chunks, error) {
	if len(fields) == 0 {
		for _, s := range v.specs {
			fields = append(fields, s.Name)
		}
	}
	var of *member
	var there []string
	for _, field := range fields {
		s, err := v.at(field, 0, 0)
		if err != nil {
			return sampler.Chunks{}, err
		}
		p, needed := s.member, []string{s.field}
		if d, ok := p.Source.(*derived); ok {
			p, needed = &v.members[0], d.how.Names
		}
		if p.can.Chunks == nil {
			return sampler.Chunks{}, fmt.Errorf("combine: %s: field %q is not of windows over HDF5 or Zarr, whose records "+
				"are in chunks", v.kind, field)
		}
		if of != nil && of != p {
			return sampler.Chunks{}, fmt.Errorf("combine: %s: fields %q are of several windows; make one of their sources, "+
				"whose chunks can be read together", v.kind, fields)
		}
		of, there = p, append(there, needed...)
	}
	if i := slices.IndexFunc(records, func(i int) bool { return i < 0 || i >= v.rows.n }); i >= 0 {
		return sampler.Chunks{}, fmt.Errorf("combine: %s: record %d of %d does not exist", v.kind, records[i], v.rows.n)
	}
	if !v.rows.all() {
		if records == nil {
			records = make([]int, v.rows.n)
			order.Consecutive(0, records)
		}
		records = v.rows.translate(nil, records)
	}
	return of.can.Chunks.Chunks(there, records)
}

// KeepChunks makes the Sources keep decoded chunks for an order.
func (v *View) KeepChunks(order *sampler.ChunkShuffle) {
	for _, p := range v.members {
		if p.can.Chunks != nil {
			p.can.Chunks.KeepChunks(order)
		}
	}
}
