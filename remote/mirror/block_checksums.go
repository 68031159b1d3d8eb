package mirror

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/store"
)

// arrivedName is the file of a mirror with the CRC32Cs that blocks had when they came, by number, 4
// bytes each: of those that the dataset has no checksums of. One is written after its block, and
// before the block is said to be there.
const arrivedName = "arrived"

// foreign reports whether the dataset has no checksums of an extent, and it was not compared with
// one when the dataset was opened.
func (x *extent) foreign() bool { return x.SumsPath == "" && !x.books }

// makeArrived makes the file, without content, if it is needed; what it has stays.
func (d *cache) makeArrived() error {
	for _, x := range d.grid.extents {
		if x.foreign() {
			return d.stretch(arrivedName, 4*d.grid.blocks)
		}
	}
	return nil
}

// sum returns the checksum that a block in the mirror must have; known is false where there is
// none.
func (d *cache) sum(ctx context.Context, x *extent, block int64) (want uint32, known bool, err error) {
	if x.foreign() {
		f, err := d.root.Open(arrivedName)
		if err != nil {
			return 0, false, err
		}
		defer f.Close()
		var b [4]byte
		_, err = f.ReadAt(b[:], 4*(x.base+block))
		if err != nil {
			err = fmt.Errorf("mirror: %s: %w", arrivedName, err)
		}
		return binary.LittleEndian.Uint32(b[:]), true, err
	}
	sums, err := d.sums(ctx, x)
	if err != nil || sums == nil {
		return 0, false, err
	}
	return sums.Of(block), true, nil
}

// noteArrived notes the checksums of blocks that came.
func (d *cache) noteArrived(x *extent, from, to int64, data []byte) error {
	if !x.foreign() {
		return nil
	}
	crcs := make([]uint32, 0, to-from)
	for b := from; b < to; b++ {
		off, n := x.within(from, b)
		crcs = append(crcs, store.CRC32C(data[off:off+n]))
	}
	return d.writeArrived(x, from, crcs...)
}

// writeArrived writes the checksums of blocks from one on.
func (d *cache) writeArrived(x *extent, from int64, crcs ...uint32) error {
	if !x.foreign() {
		return nil
	}
	data := make([]byte, 0, 4*len(crcs))
	for _, crc := range crcs {
		data = binary.LittleEndian.AppendUint32(data, crc)
	}
	return d.write(arrivedName, 4*(x.base+from), data)
}
