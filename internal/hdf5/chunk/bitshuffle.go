package chunk

import (
	"encoding/binary"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
)

// bitshuffled is filter 32008: blocks of elements whose bits are shuffled, each of which may be compressed. With
// compression the chunk begins with big-endian numbers:
//
//	bytes of the data (8), bytes of a block (4), and for each block
//	its stored bytes (4), and the block
//
// The last block is shorter, and the elements after the last group of eight follow unchanged.
type bitshuffled struct {
	element    int // bytes
	block      int // elements
	decompress func(dst, src []byte) error
	expansion  int
}

// Compressions of bitshuffle.
const (
	bitshufflePlain = 0
	bitshuffleLZ4   = 2
	bitshuffleZstd  = 3
)

const (
	defaultBlockBytes  = 8192
	leastBlockElements = 128
	mostElementBytes   = 1 << 16
)

// newBitshuffle reads the parameters of the filter: two numbers of its version, bytes of an element, elements of a
// block (0 for the default), and the compression. They come from the file, so a size that would make blocks of no whole
// bytes is refused.
func newBitshuffle(params []uint32) (Codec, error) {
	if len(params) < 3 || params[2] < 1 || params[2] > mostElementBytes {
		return nil, errParams
	}
	b := &bitshuffled{element: int(params[2]), expansion: 1}
	if len(params) > 3 && params[3] > 0 {
		b.block = int(params[3])
	} else {
		b.block = max(leastBlockElements, defaultBlockBytes/b.element&^7)
	}
	if b.block%8 != 0 {
		return nil, errParams
	}
	compression := uint32(bitshufflePlain)
	if len(params) > 4 {
		compression = params[4]
	}
	switch compression {
	case bitshufflePlain:
	case bitshuffleLZ4:
		b.decompress, b.expansion = stream.LZ4, mostLZ4
	case bitshuffleZstd:
		b.decompress, b.expansion = stream.Zstd, mostZstd
	default:
		return nil, errParams
	}
	return b, nil
}

func (b *bitshuffled) Expansion() int { return b.expansion }

// Decode implements [Codec]. Without compression the chunk is only shuffled, and as long as its data. With compression
// it begins with the size of the data and of a block, both big endian, unlike everything else in HDF5
// (https://github.com/kiyo-masui/bitshuffle, bshuf_h5filter.c).
func (b *bitshuffled) Decode(dst, src []byte) ([]byte, error) {
	if b.decompress == nil {
		if len(src) > len(dst) {
			return nil, corrupt("%d bytes, where there can be %d", len(src), len(dst))
		}
		dst = dst[:len(src)]
		return dst, b.blocks(dst, src, b.block*b.element, nil)
	}
	if len(src) < 12 {
		return nil, corrupt("%w", errCut)
	}
	size, block := binary.BigEndian.Uint64(src), uint64(binary.BigEndian.Uint32(src[8:]))
	if size > uint64(len(dst)) || block == 0 || block%uint64(8*b.element) != 0 {
		return nil, corrupt("%d bytes in blocks of %d, where there can be %d", size, block, len(dst))
	}
	dst = dst[:size]
	block = min(block, max(size, 8*uint64(b.element)))
	scratch := stream.Scratch(int(min(block, size)))
	defer stream.Return(scratch)
	return dst, b.blocks(dst, src[12:], int(block), *scratch)
}

// blocks decodes blocks of that many bytes. Compressed blocks are decompressed into scratch first.
func (b *bitshuffled) blocks(dst, src []byte, block int, scratch []byte) error {
	group := 8 * b.element
	for len(dst) > 0 {
		n := min(block, len(dst)/group*group)
		if n == 0 { // the elements that make no group of eight
			if len(src) < len(dst) {
				return corrupt("%w", errCut)
			}
			copy(dst, src)
			return nil
		}
		bits := src
		if b.decompress != nil {
			stored, rest, err := be32(src)
			if err != nil || uint64(stored) > uint64(len(rest)) {
				return corrupt("%w", errCut)
			}
			bits, src = scratch[:n], rest[stored:]
			if err := b.decompress(bits, rest[:stored]); err != nil {
				return corrupt("%w", err)
			}
		} else {
			src = src[n:]
		}
		filter.Unbitshuffle(dst[:n], bits[:n], b.element)
		dst = dst[n:]
	}
	return nil
}
