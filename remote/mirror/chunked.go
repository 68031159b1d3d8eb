package mirror

import "github.com/penstock/penstock/store"

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

// Distrust implements mmapds.Pager: a chunk that was wrong is fetched again when it is needed.
func (d *cache) Distrust(err error) bool {
	block, ok := d.index.wrongBlock(err)
	if ok {
		d.distrust(block)
	}
	return ok
}

// distrust takes a packed block out of the mirror. It may have changed on its way or on
// disk: its checksum is of the bytes that arrived.
func (d *cache) distrust(block int64) {
	d.counts.wrong.Add(1)
	d.memory.drop(d.index.grid.packed.base + block)
	if d.index.forget(block) {
		d.engine.unasked.Add(1)
	}
}
