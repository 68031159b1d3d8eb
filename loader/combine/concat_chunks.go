package combine

import (
	"fmt"

	"github.com/penstock/penstock/loader/sampler"
)

// Chunks returns the chunks of the records, with one part per source: a chunk never spans two
// sources.
func (c *Concat) Chunks(fields []string, records []int) (sampler.Chunks, error) {
	local, places := make([][]int, len(c.members)), make([][]int, len(c.members))
	for i := range c.members {
		local[i], places[i] = []int{}, []int{}
	}
	for k, record := range records {
		if record < 0 || record >= c.Len() {
			return sampler.Chunks{}, fmt.Errorf("combine: concat: record %d of %d does not exist", record, c.Len())
		}
		i, number := c.Locate(record)
		local[i], places[i] = append(local[i], number), append(places[i], k)
	}
	out := sampler.Chunks{Parts: []sampler.Chunks{}}
	for i, m := range c.members {
		if m.can.Chunks == nil {
			return out, fmt.Errorf("combine: concat: source %d is not of windows over HDF5 or Zarr, whose records are in chunks",
				i)
		}
		of := local[i]
		if records == nil {
			of = nil
		}
		part, err := m.can.Chunks.Chunks(fields, of)
		if err != nil {
			return out, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		if records != nil {
			part.Places = places[i]
		}
		out.Parts = append(out.Parts, part)
	}
	return out, nil
}

// KeepChunks makes each source keep decoded chunks for its part of an order.
func (c *Concat) KeepChunks(order *sampler.ChunkShuffle) {
	for i, m := range c.members {
		switch {
		case m.can.Chunks == nil:
		case order == nil:
			m.can.Chunks.KeepChunks(nil)
		default:
			m.can.Chunks.KeepChunks(order.Part(i))
		}
	}
}
