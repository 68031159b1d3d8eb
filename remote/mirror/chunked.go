package mirror

import (
	"errors"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/store"
)

// addPacked makes one extent of the chunks of all columns that are packed: so what lies side by
// side in the file comes in one request, whichever of them it is of.
func (g *grid) addPacked(d *store.Dataset, chunks map[string][]part, key string) (err error) {
	var all []part
	for i := range d.Columns {
		if d.Columns[i].Packed {
			all = append(all, chunks[d.Columns[i].Path()]...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	x := &extent{Extent: store.Extent{Path: d.Path}, name: hdf5Name, object: key, wanted: true}
	if x.places, err = newPlaces(all); err != nil {
		return err
	}
	x.count, x.bytes = int64(len(x.places)), total(x.places)
	g.packed = x
	return g.number(x)
}

// wrongBlock returns which of the packed blocks has a chunk that could not be read; ok is false
// where an error is of something else.
func (d *cache) wrongBlock(err error) (block int64, ok bool) {
	bad, is := errors.AsType[*chunk.Error](err)
	if !is || !errors.Is(err, meta.ErrCorrupt) || d.grid.packed == nil {
		return 0, false
	}
	x := d.grid.packed
	block = x.at(bad.Offset)
	return block, block < x.count && x.places[block].off <= bad.Offset
}

// Distrust implements mmapds.Pager: a chunk that was wrong is fetched again when it is needed.
func (d *cache) Distrust(err error) bool {
	block, ok := d.wrongBlock(err)
	if ok {
		d.distrust(block)
	}
	return ok
}

// distrust takes a packed block out of the mirror. Whether it was changed on its way or on disk
// nobody can tell: its checksum is of what came.
func (d *cache) distrust(block int64) {
	x := d.grid.packed
	d.counts.wrong.Add(1)
	d.state.remove(x.base + block)
	d.memory.drop(x.base + block)
	if x.right.Remove(block) {
		d.left.Add(1)
		d.engine.unasked.Add(1)
		d.whole.Store(false)
	}
}
