// Package blosc decodes the chunks of blosc 1, which Zarr and HDF5's filter 32001 store: blocks that are
// shuffled by bytes or bits and compressed by blosclz, lz4 (and lz4hc), zlib or zstd.
//
//	err := blosc.Decode(dst, chunk) // len(dst) is the size of the chunk's data
//
// The layout is described in https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst. Chunks are untrusted:
// any bytes give an error or fill dst, with memory of at most one more block.
package blosc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
)

const (
	headerBytes  = 16
	newest       = 2 // version of the format
	mostStreams  = 16
	leastElement = 128 // elements in a block that has a stream for each byte of an element
)

// Flags of a chunk. The compressor is in the highest three bits.
const (
	flagShuffle    = 1 << 0
	flagStored     = 1 << 1
	flagBitshuffle = 1 << 2
	flagReserved   = 1 << 3
	flagOneStream  = 1 << 4
)

// header is the header of a chunk.
type header struct {
	flags     byte
	element   int // bytes
	dataBytes int
	block     int // bytes of the data in each block but the last
}

// Decode fills dst with the data of a chunk, which must be as long as dst. It may be called from any goroutine.
func Decode(dst, chunk []byte) error {
	h, chunk, err := parse(chunk)
	switch {
	case err != nil:
		return err
	case h.dataBytes != len(dst):
		return fmt.Errorf("blosc: %d bytes of data, not %d", h.dataBytes, len(dst))
	case len(dst) == 0:
		return nil
	case h.flags&flagStored != 0:
		if len(chunk) != headerBytes+len(dst) {
			return errors.New("blosc: stored data has another length")
		}
		copy(dst, chunk[headerBytes:])
		return nil
	}
	return h.blocks(dst, chunk)
}

// Size returns how many bytes of data a chunk claims to have. The number is untrusted, and Decode compares it with dst.
func Size(chunk []byte) (int, error) {
	h, _, err := parse(chunk)
	return h.dataBytes, err
}

// parse reads the header of a chunk, and cuts the chunk to the size in the header. Both sizes are compared with the
// bytes that exist before anything is sliced by them.
func parse(chunk []byte) (header, []byte, error) {
	if len(chunk) < headerBytes {
		return header{}, nil, errors.New("blosc: the chunk is shorter than its header")
	}
	h := header{
		flags:     chunk[2],
		element:   max(1, int(chunk[3])),
		dataBytes: int(binary.LittleEndian.Uint32(chunk[4:])),
		block:     int(binary.LittleEndian.Uint32(chunk[8:])),
	}
	size := int(binary.LittleEndian.Uint32(chunk[12:]))
	switch {
	case chunk[0] > newest || h.flags&flagReserved != 0:
		return header{}, nil, fmt.Errorf("blosc: a chunk of format version %d, of blosc 2", chunk[0])
	case size < headerBytes || size > len(chunk):
		return header{}, nil, fmt.Errorf("blosc: %d bytes of %d of the chunk", len(chunk), size)
	case h.dataBytes > 0 && (h.block == 0 || h.block > h.dataBytes):
		return header{}, nil, fmt.Errorf("blosc: blocks of %d bytes in a chunk of %d", h.block, h.dataBytes)
	}
	return h, chunk[:size], nil
}

// blocks decodes the blocks of a chunk, whose places follow the header. The list of places must fit the chunk before it
// is read.
func (h *header) blocks(dst, chunk []byte) error {
	n := (len(dst)-1)/h.block + 1
	if n > (len(chunk)-headerBytes)/4 {
		return errors.New("blosc: the chunk is shorter than the list of its blocks")
	}
	decompress := decompressors[h.flags>>5]
	if decompress == nil {
		return fmt.Errorf("blosc: compressor %d is not supported; recompress with lz4 or zstd", h.flags>>5)
	}
	var scratch []byte
	if h.transforms() {
		b := stream.Scratch(h.block)
		defer stream.Return(b)
		scratch = *b
	}
	for i := range n {
		at := int(binary.LittleEndian.Uint32(chunk[headerBytes+4*i:]))
		block := dst[i*h.block : min((i+1)*h.block, len(dst))]
		if err := h.decodeBlock(block, chunk, at, scratch, decompress); err != nil {
			return fmt.Errorf("blosc: block %d: %w", i, err)
		}
	}
	return nil
}

// transforms reports whether blocks are shuffled.
func (h *header) transforms() bool {
	return h.flags&flagShuffle != 0 && h.element > 1 || h.flags&flagBitshuffle != 0
}

// decodeBlock decodes the block at chunk[at:]. A shuffled block is decompressed into scratch first.
func (h *header) decodeBlock(dst, chunk []byte, at int, scratch []byte, decompress decompressor) error {
	plain := dst
	if scratch != nil {
		plain = scratch[:len(dst)]
	}
	if err := h.streams(plain, chunk, at, decompress); err != nil {
		return err
	}
	if scratch != nil {
		h.unshuffle(dst, plain)
	}
	return nil
}

// unshuffle undoes the shuffle of a block. In a block whose number of elements is no multiple of eight, bits were not
// shuffled.
func (h *header) unshuffle(dst, src []byte) {
	switch n := len(src) / h.element; {
	case h.flags&flagShuffle != 0 && h.element > 1:
		filter.Unshuffle(dst, src, h.element)
	case n%8 == 0:
		filter.Unbitshuffle(dst, src, h.element)
	default:
		copy(dst, src)
	}
}

// streams decompresses the streams of a block, each of which follows its length. A full block may have one stream for
// each byte of an element.
func (h *header) streams(dst, chunk []byte, at int, decompress decompressor) error {
	n := 1
	if h.flags&flagOneStream == 0 && h.element <= mostStreams && h.block/h.element >= leastElement && len(dst) == h.block {
		n = h.element
	}
	size := len(dst) / n
	if size*n != len(dst) {
		return errors.New("its length is no multiple of an element's")
	}
	for i := range n {
		if at < 0 || at > len(chunk)-4 {
			return errors.New("it is outside of the chunk")
		}
		stored := int(binary.LittleEndian.Uint32(chunk[at:]))
		at += 4
		if stored > len(chunk)-at {
			return errors.New("a stream ends outside of the chunk")
		}
		from, to := chunk[at:at+stored], dst[i*size:(i+1)*size]
		at += stored
		if stored == size {
			copy(to, from)
		} else if err := decompress(to, from); err != nil {
			return err
		}
	}
	return nil
}
