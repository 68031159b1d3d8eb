package chunk

import (
	"encoding/binary"
	"math/bits"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
)

// szip is HDF5's filter of that name: the lossless compression of CCSDS 121.0-B, as libaec
// (https://gitlab.dkrz.de/k202009/libaec) writes it. Each number is predicted from the number before,
// and the differences, in blocks, have a Rice code whose parameter each block chooses.
type szip struct {
	bits      int // of a number
	block     int // numbers
	line      int // numbers of a scanline, after which the last block is filled up
	predicted bool
	big       bool
	planes    int // bytes of a number that are stored byte by byte, as with the filter shuffle; 0 for others
}

// Flags of the first parameter.
const (
	szipMSB       = 16
	szipPredicted = 32
)

// newSzip reads options, numbers of a block, bits of a number and numbers of a scanline.
func newSzip(params []uint32) (Codec, error) {
	if len(params) < 4 {
		return nil, errParams
	}
	s := &szip{
		bits: int(params[2]), block: int(params[1]), line: int(params[3]),
		predicted: params[0]&szipPredicted != 0, big: params[0]&szipMSB != 0,
	}
	if s.bits == 32 || s.bits == 64 {
		s.planes, s.bits = s.bits/8, 8
	}
	if s.bits < 1 || s.bits > 24 || s.block < 2 || s.block > 32 || s.block%2 != 0 || s.line < 1 || s.line > 4096 {
		return nil, errParams
	}
	return s, nil
}

func (s *szip) Expansion() int { return mostSzip }

// bytes returns the number of bytes in which the library stores a number.
func (s *szip) bytes() int {
	switch {
	case s.bits > 16:
		return 4
	case s.bits > 8:
		return 2
	}
	return 1
}

// Decode undoes the filter: the size of the data in four bytes, little endian, and a stream.
func (s *szip) Decode(dst, src []byte) ([]byte, error) {
	if len(src) < 4 {
		return nil, corrupt("%w", errCut)
	}
	size := uint64(binary.LittleEndian.Uint32(src))
	if size > uint64(len(dst)) || size%uint64(s.bytes()) != 0 {
		return nil, corrupt("%d bytes, where there can be %d", size, len(dst))
	}
	dst = dst[:size]
	out := dst
	if s.planes > 1 {
		scratch := stream.Scratch(len(dst))
		defer stream.Return(scratch)
		out = *scratch
	}
	d := szipDecoder{szip: s, r: filter.BitReader{Src: src[4:]}, intervalBlocks: (s.line-1)/s.block + 1}
	if err := d.decode(out); err != nil {
		return nil, err
	}
	if s.planes > 1 {
		filter.Unshuffle(dst, out, s.planes)
	}
	return dst, nil
}

// szipDecoder reads one stream. The stream consists of intervals of blocks, and the first block of an interval begins
// with a number that is stored unchanged.
type szipDecoder struct {
	*szip
	r              filter.BitReader
	intervalBlocks int
	values         []uint32 // of the present interval
	at             int
}

// Numbers of runs of blocks of zeros.
const (
	restOfSegment = 5 // the run reaches to the end of 64 blocks
	segment       = 64
)

// decode fills dst interval by interval. A reference sample begins each interval, so that an error spreads no further;
// the last interval may have more numbers than the chunk, as the encoder pads it to whole blocks (CCSDS 121.0-B), and
// these are decoded and dropped.
func (d *szipDecoder) decode(dst []byte) error {
	d.values = make([]uint32, d.intervalBlocks*d.block)
	width := d.bytes()
	for len(dst) > 0 {
		n := min(d.line, len(dst)/width) // numbers of this interval that are data
		for d.at = 0; d.at < n; {
			if err := d.nextBlock(); err != nil {
				return err
			}
		}
		if d.predicted {
			d.undoPrediction(n)
		}
		for _, x := range d.values[:n] {
			d.put(dst, x)
			dst = dst[width:]
		}
	}
	return nil
}

// put stores a number.
func (d *szipDecoder) put(dst []byte, x uint32) {
	switch width := d.bytes(); {
	case width == 1:
		dst[0] = byte(x)
	case width == 2 && d.big:
		binary.BigEndian.PutUint16(dst, uint16(x))
	case width == 2:
		binary.LittleEndian.PutUint16(dst, uint16(x))
	case d.big:
		binary.BigEndian.PutUint32(dst, x)
	default:
		binary.LittleEndian.PutUint32(dst, x)
	}
}

// nextBlock decodes a block, or a run of blocks of zeros.
func (d *szipDecoder) nextBlock() error {
	wide := 3
	if d.bits > 16 {
		wide = 5
	} else if d.bits > 8 {
		wide = 4
	}
	id := int(d.r.Next(wide))
	end := d.at + d.block
	switch {
	case id == 0:
		second := d.r.Next(1) == 1
		d.reference()
		if second {
			return d.secondExtension(end)
		}
		return d.zeros()
	case id == 1<<wide-1:
		for ; d.at < end; d.at++ {
			d.values[d.at] = uint32(d.r.Next(d.bits))
		}
	default:
		d.reference()
		return d.split(end, id-1)
	}
	return d.cut()
}

func (d *szipDecoder) cut() error {
	if d.r.Over() {
		return corrupt("%w", errCut)
	}
	return nil
}

// reference takes the first number of an interval, from which the others are predicted.
func (d *szipDecoder) reference() {
	if d.predicted && d.at == 0 {
		d.values[0] = uint32(d.r.Next(d.bits))
		d.at = 1
	}
}

// unary takes a number of zeros that a one ends.
func (d *szipDecoder) unary() (int, error) {
	for n := 0; ; {
		if d.r.Over() {
			return 0, corrupt("%w", errCut)
		}
		k := min(bits.LeadingZeros64(d.r.Word()), 56)
		if k < 56 {
			d.r.Skip(k + 1)
			return n + k, nil
		}
		d.r.Skip(k)
		n += k
	}
}

// split decodes numbers whose lowest k bits come after the other bits.
func (d *szipDecoder) split(end, k int) error {
	first := d.at
	for i := first; i < end; i++ {
		n, err := d.unary()
		if err != nil {
			return err
		}
		d.values[i] = uint32(n) << k
	}
	for i := first; i < end; i++ {
		d.values[i] |= uint32(d.r.Next(k))
	}
	d.at = end
	return d.cut()
}

// zeros decodes a run of blocks of zeros.
func (d *szipDecoder) zeros() error {
	n, err := d.unary()
	if err != nil {
		return err
	}
	here := d.at / d.block
	switch n++; {
	case n == restOfSegment:
		n = min(d.intervalBlocks-here, segment-here%segment)
	case n > restOfSegment:
		n--
	}
	if n > d.intervalBlocks-here {
		return corrupt("%d blocks of zeros, where there are %d", n, d.intervalBlocks-here)
	}
	end := (here + n) * d.block
	clear(d.values[d.at:end])
	d.at = end
	return d.cut()
}

// secondExtension decodes small numbers in pairs, each pair from a single code.
func (d *szipDecoder) secondExtension(end int) error {
	for d.at < end {
		m, err := d.unary()
		if err != nil {
			return err
		}
		if m > 90 {
			return corrupt("pair %d of numbers, where there are 90", m)
		}
		sum := 0
		for (sum+1)*(sum+2)/2 <= m {
			sum++
		}
		second := m - sum*(sum+1)/2
		if d.at%2 == 0 {
			d.values[d.at] = uint32(sum - second)
			d.at++
		}
		d.values[d.at] = uint32(second)
		d.at++
	}
	return d.cut()
}

// undoPrediction turns the first n differences into numbers. Differences that both directions have room for
// alternate in sign.
func (d *szipDecoder) undoPrediction(n int) {
	most := uint32(1)<<d.bits - 1
	half := most/2 + 1
	x := d.values[0]
	for i := 1; i < n; i++ {
		v := d.values[i]
		mask := uint32(0)
		if x&half != 0 {
			mask = most
		}
		if v>>1+v&1 <= mask^x {
			x += v>>1 ^ -(v & 1)
		} else {
			x = mask ^ v
		}
		d.values[i] = x
	}
}
