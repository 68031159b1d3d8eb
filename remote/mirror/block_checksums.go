package mirror

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/penstock/penstock/internal/layout"
)

// foreign reports whether the dataset has no checksums of an extent that is fetched block by block. Metadata was
// compared when the dataset was opened.
func (x *extent) foreign() bool { return x.SumsPath == "" && !x.metadata }

// makeArrived makes the file of arrival checksums, if an extent needs it. An existing file keeps its content.
func (s *checksums) makeArrived(g *grid) error {
	for _, x := range g.extents {
		if x.foreign() {
			return s.files.stretch(arrivedName, 4*g.blocks)
		}
	}
	return nil
}

// of returns the checksum that a block in the mirror must have; known is false if it is not known. A block without a
// checksum in the dataset is compared with its checksum on arrival, which finds damage on this machine's disk but not
// on the way.
func (s *checksums) of(ctx context.Context, x *extent, block int64) (want uint32, known bool, err error) {
	if x.foreign() {
		f, err := s.files.root.Open(arrivedName)
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
	sums, err := s.load(ctx, x)
	if err != nil || sums == nil {
		return 0, false, err
	}
	return sums.Of(block), true, nil
}

// noteArrived stores the checksums that blocks had on arrival, if the dataset has no checksums.
func (s *checksums) noteArrived(x *extent, from, to int64, data []byte) error {
	if !x.foreign() {
		return nil
	}
	crcs := make([]uint32, 0, to-from)
	for b := from; b < to; b++ {
		off, n := x.within(from, b)
		crcs = append(crcs, layout.CRC32C(data[off:off+n]))
	}
	return s.writeArrived(x, from, crcs...)
}

// writeArrived writes the arrival checksums of blocks from from on.
func (s *checksums) writeArrived(x *extent, from int64, crcs ...uint32) error {
	if !x.foreign() {
		return nil
	}
	data := make([]byte, 0, 4*len(crcs))
	for _, crc := range crcs {
		data = binary.LittleEndian.AppendUint32(data, crc)
	}
	return s.files.write(arrivedName, 4*(x.base+from), data)
}
