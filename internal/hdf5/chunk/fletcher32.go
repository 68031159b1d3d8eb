package chunk

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// checkFletcher32 compares the little-endian checksum at the end of src with the bytes before it, which it returns.
// Like libhdf5 it also accepts the sum that libhdf5 1.6.2 wrote on little-endian machines, with the bytes of its halves
// swapped.
func checkFletcher32(src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, fmt.Errorf("%d bytes have no room for a checksum: %w", len(src), meta.ErrCorrupt)
	}
	data := src[:len(src)-4]
	sum, stored := filter.Fletcher32(data), binary.LittleEndian.Uint32(src[len(data):])
	old := bits.RotateLeft32(bits.ReverseBytes32(sum), 16)
	if stored != sum && stored != old {
		return nil, fmt.Errorf("checksum is %08x, stored is %08x: %w", sum, stored, meta.ErrCorrupt)
	}
	return data, nil
}
