package chunk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Run is N records from First on, which go to dst[To*RecordBytes:].
type Run struct{ First, N, To int64 }

// Runs is Gather for runs of records, which must exist, and may overlap. It sorts runs by First, as
// records are grouped by chunk. Places of dst that no run goes to stay as they are.
func (r *Reader) Runs(ctx context.Context, dst []byte, runs []Run) error {
	room := int64(0)
	if r.grid.record > 0 {
		room = int64(len(dst) / r.grid.record)
	}
	for _, x := range runs {
		if x.First < 0 || x.N < 0 || x.N > r.Len() || x.First > r.Len()-x.N {
			return fmt.Errorf("hdf5: dataset %q: records [%d, %d) of %d do not exist", r.path, x.First, x.First+x.N, r.Len())
		}
		if x.To < 0 || x.N > room || x.To > room-x.N {
			panic("hdf5: Runs: a run goes outside of dst")
		}
	}
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.To, b.To)) })
	c := r.call(ctx, dst)
	defer r.recycle(c)
	for _, x := range runs {
		c.addRunTo(x.First, x.First+x.N, x.To)
	}
	return c.run()
}
