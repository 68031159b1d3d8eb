package chunk

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// scaleOffset is HDF5's filter of that name: numbers as their distance to the least of the
// chunk, in as many bits as the largest needs; floating-point numbers are multiplied by a power
// of ten and rounded first, so it loses digits.
//
// Its stored form, from H5Zscaleoffset.c:
//
//	bits of a distance (4 bytes), bytes of the least number (1), the least number (16),
//	distances, each with its highest bit first, side by side
//
// The least number of floating-point numbers is one of them. The largest distance that the bits can
// hold stands for the fill value, if there is one. If a distance has all bits of a number, numbers
// are stored as they are.
type scaleOffset struct {
	asStored bool // the filter does nothing: the user asked for all bits of a number
	tooMany  int  // bits asked for, if they are more than a number has: the library skips the filter in every chunk
	size     int  // bytes of a number: 1, 2, 4 or 8
	count    int  // numbers in a chunk
	float    bool
	big      bool // numbers are big endian
	fills    bool // there is a fill value
	fill     uint64
	scale    float64 // float: the power of ten
}

const scaleOffsetHead = 4 + 1 + 16

// Places of the filter's parameters.
const (
	soKind = iota
	soFactor
	soCount
	soClass
	soSize
	soSign
	soOrder
	soFills
	soFill // two of them
)

// newScaleOffset reads the parameters of the filter. size is the size of a chunk in bytes.
func newScaleOffset(params []uint32, size int) (s scaleOffset, err error) {
	if len(params) < soFill+2 {
		return s, fmt.Errorf("scaleoffset with %d parameters: %w", len(params), meta.ErrCorrupt)
	}
	s = scaleOffset{
		size: int(params[soSize]), count: int(params[soCount]), float: params[soClass] == 1, big: params[soOrder] == 1,
		fills: params[soFills] == 1, fill: uint64(params[soFill]) | uint64(params[soFill+1])<<32,
	}
	factor := int32(params[soFactor])
	known := slices.Contains([]int{1, 2, 4, 8}, s.size)
	switch {
	case s.float && (params[soKind] != 0 || s.size < 4), !s.float && params[soKind] != 2, params[soClass] > 1:
		return s, fmt.Errorf("scaleoffset of kind %d: %w", params[soKind], meta.ErrUnsupported)
	case !known || s.size*s.count != size:
		return s, fmt.Errorf("scaleoffset of %d numbers of %d bytes, %d bits: %w", s.count, s.size, factor, meta.ErrCorrupt)
	}
	if !s.float && int(factor) > 8*s.size {
		s.tooMany = int(factor)
	}
	s.asStored = !s.float && int(factor) == 8*s.size
	s.scale = math.Pow10(int(factor))
	return s, nil
}

// undo decodes the stored bytes of a chunk into dst.
func (s *scaleOffset) undo(dst, src []byte) error {
	if s.asStored {
		return exact(dst, src)
	}
	if s.tooMany > 0 {
		return fmt.Errorf("a chunk of numbers of %d bytes as %d bits each: %w", s.size, s.tooMany, meta.ErrCorrupt)
	}
	if len(src) < scaleOffsetHead {
		return fmt.Errorf("%d bytes have no room for its parameters: %w", len(src), meta.ErrCorrupt)
	}
	bits := uint64(binary.LittleEndian.Uint32(src))
	least := binary.LittleEndian.Uint64(src[5:])
	if n := src[4]; n < 8 {
		least &= 1<<(8*n) - 1
	}
	src = src[scaleOffsetHead:]
	if bits > uint64(8*s.size) || (uint64(s.count)*bits+7)/8 > uint64(len(src)) {
		return fmt.Errorf("%d numbers of %d bits do not fit %d bytes: %w", s.count, bits, len(src), meta.ErrCorrupt)
	}
	if bits == uint64(8*s.size) {
		return exact(dst, src[:len(dst)])
	}
	s.numbers(dst, filter.BitReader{Src: src}, int(bits), least)
	if s.big {
		filter.SwapBytes(dst, s.size)
	}
	return nil
}

// inflateSome inflates a zlib stream of at most len(dst) bytes: the size of the filter's output before compression is
// not fixed.
func inflateSome(dst, src []byte) ([]byte, error) {
	b, err := stream.ZlibUpTo(dst, src)
	return b, corrupted(err)
}

// corrupted marks an error of a stream as damage of the file; nil stays nil.
func corrupted(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", err, meta.ErrCorrupt)
}

// exact copies a chunk that is stored unchanged.
func exact(dst, src []byte) error {
	if len(src) != len(dst) {
		return fmt.Errorf("%d bytes for a chunk of %d: %w", len(src), len(dst), meta.ErrCorrupt)
	}
	copy(dst, src)
	return nil
}

// numbers decodes the numbers into dst, in little endian.
func (s *scaleOffset) numbers(dst []byte, r filter.BitReader, bits int, least uint64) {
	largest := uint64(1)<<bits - 1
	for ; len(dst) >= s.size; dst = dst[s.size:] {
		x := r.Next(bits)
		switch {
		case s.fills && x == largest:
			x = s.fill
		case !s.float:
			x += least
		case s.size == 4:
			x = uint64(math.Float32bits(float32(float32(int32(x))/float32(s.scale)) + math.Float32frombits(uint32(least))))
		default:
			x = math.Float64bits(float64(float64(int64(x))/s.scale) + math.Float64frombits(least))
		}
		switch s.size {
		case 1:
			dst[0] = byte(x)
		case 2:
			binary.LittleEndian.PutUint16(dst, uint16(x))
		case 4:
			binary.LittleEndian.PutUint32(dst, uint32(x))
		default:
			binary.LittleEndian.PutUint64(dst, x)
		}
	}
}
