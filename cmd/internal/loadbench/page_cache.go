package loadbench

import (
	"context"
	"os"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
)

// warm reads the dataset into memory, so that the first row does not pay for reads that later rows
// are spared. It returns a sentence that says whether that was possible.
func warm(ctx context.Context, s *subject, report func(int)) string {
	size := fileBytes(s.files)
	if free := int64(freeMemory()); free > 0 && size > free/2 {
		return "the dataset's files have " + units.Bytes(size) +
			", which is much for this machine's memory: rows may differ in what they found there"
	}
	for _, d := range s.files {
		for _, c := range layout.Of(d).Columns {
			if c.Packed {
				return "the dataset is packed: rows differ in what they found inflated"
			}
		}
	}
	ds, ok := s.stored.(loader.MappedSource)
	if !ok {
		return "the dataset's memory is not mapped: rows may differ in what they found there"
	}
	const step = 1 << 12 // records
	for _, spec := range ds.Specs() {
		for a := 0; a < ds.Len() && ctx.Err() == nil; a += step {
			b := min(a+step, ds.Len())
			if err := ds.Warm(spec.Name, a, b); err != nil {
				return "the dataset could not be read into memory beforehand: " + err.Error()
			}
			report(b - a)
		}
	}
	return "the dataset was read into memory before the rows were measured"
}

// fileBytes returns the size of a dataset's files.
func fileBytes(files []*store.Dataset) (sum int64) {
	seen := make(map[string]bool)
	for _, d := range files {
		for _, c := range layout.Of(d).Columns {
			for _, e := range c.Extents {
				if info, err := os.Stat(e.Path); err == nil && !seen[e.Path] {
					seen[e.Path] = true
					sum += info.Size()
				}
			}
		}
	}
	return sum
}
