package blosc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
)

const (
	header2Bytes = 32
	filterSlots  = 6
)

// Filters of blosc 2. filterTruncate has dropped bits, and nothing can be undone.
const (
	filterNone = iota
	filterShuffle
	filterBitshuffle
	filterDelta
	filterTruncate // which has nothing to undo
)

// Special values of a whole chunk.
const (
	specialNone = iota
	specialZeros
	specialNaN
	specialValue
	specialUninitialized
)

// chunk2 is a chunk of blosc 2: a header of blosc 1, a second header of the same length, and the data.
type chunk2 struct {
	header
	version byte
	stored  []byte // all bytes of the chunk, headers included
	filters [filterSlots]byte
	meta    [filterSlots]byte
	special byte
}

// parse2 reads the headers of a chunk, and refuses features that are not decoded here and sizes that do not fit its
// bytes.
func parse2(b []byte) (*chunk2, error) {
	if len(b) < header2Bytes {
		return nil, errors.New("blosc2: the chunk is shorter than its header")
	}
	c := &chunk2{version: b[0], header: header{
		flags:     b[2],
		element:   max(1, int(b[3])),
		dataBytes: int(binary.LittleEndian.Uint32(b[4:])),
		block:     int(binary.LittleEndian.Uint32(b[8:])),
	}}
	size := int(binary.LittleEndian.Uint32(b[12:]))
	copy(c.filters[:], b[16:])
	copy(c.meta[:], b[24:])
	more := b[31]
	c.special = more >> 4 & 7
	switch {
	case c.flags&(flagShuffle|flagBitshuffle) != flagShuffle|flagBitshuffle:
		return nil, errors.New("blosc2: a chunk without the header of blosc 2")
	case more&(1|8) != 0:
		return nil, errors.New("blosc2: chunks with a dictionary, or whose data is elsewhere, are not supported")
	case size < header2Bytes || size > len(b):
		return nil, fmt.Errorf("blosc2: %d bytes of %d of the chunk", len(b), size)
	case c.dataBytes > 0 && (c.block < 1 || c.block > c.dataBytes):
		return nil, fmt.Errorf("blosc2: blocks of %d bytes in a chunk of %d", c.block, c.dataBytes)
	}
	c.stored = b[:size]
	return c, nil
}

// decode fills dst, which has dataBytes bytes.
func (c *chunk2) decode(dst []byte) error {
	switch body := c.stored[header2Bytes:]; {
	case len(dst) == 0:
		return nil
	case c.special != specialNone:
		return c.fill(dst, body)
	case c.flags&flagStored != 0:
		if len(body) != len(dst) {
			return errors.New("blosc2: stored data has another length")
		}
		copy(dst, body)
		return nil
	}
	return c.blocks(dst)
}

// fill decodes a chunk of one value, which has no blocks.
func (c *chunk2) fill(dst, body []byte) error {
	value := []byte{0}
	switch c.special {
	case specialZeros, specialUninitialized:
	case specialNaN:
		switch c.element {
		case 4:
			value = binary.LittleEndian.AppendUint32(nil, 0x7fc00000)
		case 8:
			value = binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())&^1)
		default:
			return fmt.Errorf("blosc2: NaN of %d bytes", c.element)
		}
	case specialValue:
		if len(body) < c.element {
			return errors.New("blosc2: the chunk ends before its value")
		}
		value = body[:c.element]
	default:
		return fmt.Errorf("blosc2: special chunks of kind %d are not supported", c.special)
	}
	copy(dst, value)
	for n := min(len(value), len(dst)); n < len(dst); {
		n += copy(dst[n:], dst[:n])
	}
	return nil
}

// blocks decodes the blocks of a chunk.
func (c *chunk2) blocks(dst []byte) error {
	n := (len(dst)-1)/c.block + 1
	if n > (len(c.stored)-header2Bytes)/4 {
		return errors.New("blosc2: the chunk is shorter than the list of its blocks")
	}
	decompress := decompressors[c.flags>>5]
	if decompress == nil {
		return fmt.Errorf("blosc2: compressor %d is not supported; recompress with lz4 or zstd", c.flags>>5)
	}
	b := stream.Scratch(c.block)
	defer stream.Return(b)
	for i := range n {
		at := int(int32(binary.LittleEndian.Uint32(c.stored[header2Bytes+4*i:])))
		first, end := i*c.block, min((i+1)*c.block, len(dst))
		if err := c.streams(dst[first:end], at, decompress); err != nil {
			return fmt.Errorf("blosc2: block %d: %w", i, err)
		}
		if err := c.undo(dst, first, end, (*b)[:end-first]); err != nil {
			return err
		}
	}
	return nil
}

// undo undoes the filters of a block, the last filter first.
func (c *chunk2) undo(dst []byte, first, end int, scratch []byte) error {
	block := dst[first:end]
	for i := filterSlots - 1; i >= 0; i-- {
		element := c.element
		switch c.filters[i] {
		case filterNone, filterTruncate:
			continue
		case filterDelta:
			undelta(dst, first, end, element)
			continue
		case filterShuffle:
			if c.meta[i] != 0 {
				element = int(c.meta[i])
			}
			if element == 1 {
				continue
			}
			filter.Unshuffle(scratch, block, element)
		case filterBitshuffle:
			if c.version < 3 && len(block)/element%8 != 0 {
				continue
			}
			filter.Unbitshuffle(scratch, block, element)
		default:
			return fmt.Errorf("blosc2: filter %d is not supported; write the file with shuffle or bitshuffle", c.filters[i])
		}
		copy(block, scratch)
	}
	return nil
}

// undelta undoes the filter delta. The first block stores each element as the exclusive or with the element before it,
// and all other blocks as the exclusive or with the first block.
func undelta(dst []byte, first, end, element int) {
	switch {
	case element == 1, element == 2, element == 4, element == 8:
	case element%8 == 0:
		element = 8
	default:
		element = 1
	}
	n := (end - first) / element * element
	if first > 0 {
		for i := range n {
			dst[first+i] ^= dst[i]
		}
		return
	}
	for i := element; i < n; i++ {
		dst[i] ^= dst[i-element]
	}
}

// streams decompresses the streams of a block. A full block may have one stream for each byte of an element. A stream
// of equal bytes has no data, and its length encodes the byte.
func (c *chunk2) streams(dst []byte, at int, decompress decompressor) error {
	n := 1
	if c.flags&flagOneStream == 0 && len(dst) == c.block {
		n = c.element
	}
	size := len(dst) / n
	if size*n != len(dst) || size == 0 {
		return errors.New("its length is no multiple of an element's")
	}
	for i := range n {
		if at < 0 || at > len(c.stored)-4 {
			return errors.New("it is outside of the chunk")
		}
		stored, to := int(int32(binary.LittleEndian.Uint32(c.stored[at:]))), dst[i*size:(i+1)*size]
		at += 4
		switch {
		case stored == 0:
			clear(to)
			continue
		case stored < 0:
			if at == len(c.stored) || c.stored[at]&1 == 0 || stored < -255 {
				return errors.New("a stream of no known kind")
			}
			at++
			for k := range to {
				to[k] = byte(-stored)
			}
			continue
		case stored > len(c.stored)-at:
			return errors.New("a stream ends outside of the chunk")
		}
		from := c.stored[at : at+stored]
		at += stored
		if stored == size {
			copy(to, from)
		} else if err := decompress(to, from); err != nil {
			return err
		}
	}
	return nil
}
