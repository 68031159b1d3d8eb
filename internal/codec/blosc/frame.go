package blosc

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// DecodeFrame decodes a contiguous frame of blosc 2 with one chunk, as HDF5's filter 32026 stores it, to the beginning
// of dst, and returns that part. Data of several axes, whose blocks have several axes, too (b2nd), is returned in C
// order.
//
// The layout is described in https://github.com/Blosc/c-blosc2/blob/main/README_CFRAME_FORMAT.rst.
func DecodeFrame(dst, frame []byte) ([]byte, error) {
	f, err := parseFrame(frame)
	if err != nil {
		return nil, err
	}
	c, data, err := f.chunk()
	switch {
	case err != nil:
		return nil, err
	case data > uint64(len(dst)):
		return nil, fmt.Errorf("blosc2: %d bytes of data, where there can be %d", data, len(dst))
	case c == nil:
		clear(dst[:data])
		return dst[:data], nil
	case f.axes == nil:
		dst = dst[:data]
		return dst, c.decode(dst)
	}
	return f.blocks(dst, c)
}

// frame is a frame of blosc 2: a header and chunks.
type frame struct {
	b          []byte
	headerSize int
	data       uint64 // bytes
	stored     uint64 // bytes of the chunks
	element    int
	axes       []axis // axes of data of several axes, otherwise nil
}

// axis is one axis of a chunk.
type axis struct{ length, block int }

var errFrame = errors.New("blosc2: no frame, or one that is cut")

// Places in a frame's header, after the byte with the type of the number.
const (
	frameMagic      = "\xa8b2frame\x00"
	frameHeaderSize = 0x0b
	frameSize       = 0x10
	frameData       = 0x1e
	frameStored     = 0x27
	frameElement    = 0x30
	frameMetalayers = 0x57
)

// parseFrame reads the header of a frame: numbers of MessagePack at fixed places, big endian. Sizes are compared with
// the number of bytes before anything is sliced by them.
func parseFrame(b []byte) (f frame, err error) {
	if len(b) < frameMetalayers || string(b[1:1+len(frameMagic)]) != frameMagic {
		return f, errFrame
	}
	be := binary.BigEndian
	f = frame{
		headerSize: int(be.Uint32(b[frameHeaderSize:])), data: be.Uint64(b[frameData:]), stored: be.Uint64(b[frameStored:]),
		element: int(be.Uint32(b[frameElement:])),
	}
	size := be.Uint64(b[frameSize:])
	if size > uint64(len(b)) || f.headerSize < frameMetalayers || uint64(f.headerSize) > size ||
		f.stored > size-uint64(f.headerSize) {
		return f, errFrame
	}
	f.b = b[:size]
	f.axes, err = parseAxes(f.b[:f.headerSize])
	return f, err
}

// parseAxes reads the lengths of the axes of a chunk, and of the blocks in it, from the metalayer b2nd, if the frame
// has one.
func parseAxes(b []byte) ([]axis, error) {
	p := msgpack{b: b[frameMetalayers:]}
	p.skip(1 + 3) // an array, and a number
	if p.next() != 0xde {
		return nil, errFrame
	}
	for range p.uint(2) {
		name := string(p.take(int(p.next() & 31)))
		p.skip(1)
		at := p.uint(4)
		if name != "b2nd" {
			continue
		}
		if p.failed || at > uint64(len(b)) {
			return nil, errFrame
		}
		q := msgpack{b: b[at:]}
		q.skip(5 + 2) // the size of the metalayer, an array, its version
		return q.axes()
	}
	if p.failed {
		return nil, errFrame
	}
	return nil, nil
}

// msgpack reads values of MessagePack whose types are known.
type msgpack struct {
	b      []byte
	failed bool
}

// take returns the next n bytes. Past the end it returns nil and sets failed, which callers check once at the end.
func (p *msgpack) take(n int) []byte {
	if n > len(p.b) {
		p.b, p.failed = nil, true
		return nil
	}
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

func (p *msgpack) skip(n int) { p.take(n) }

func (p *msgpack) next() (x byte) {
	for _, x = range p.take(1) {
	}
	return x
}

func (p *msgpack) uint(n int) (x uint64) {
	for _, b := range p.take(n) {
		x = x<<8 | uint64(b)
	}
	return x
}

// axes reads the lengths of the axes of all data, which is one chunk here, of chunks and of blocks.
func (p *msgpack) axes() ([]axis, error) {
	n := int(p.next())
	if n > 16 {
		return nil, errFrame
	}
	lists := [3][]uint64{}
	for i, width := range []int{8, 4, 4} {
		p.skip(1)
		for range n {
			p.skip(1)
			lists[i] = append(lists[i], p.uint(width))
		}
	}
	list := make([]axis, n)
	for i := range list {
		shape, chunk, block := lists[0][i], lists[1][i], lists[2][i]
		if p.failed || shape != chunk || block < 1 || block > chunk || chunk > 1<<31 {
			return nil, errors.New("blosc2: data of several chunks is not supported")
		}
		list[i] = axis{int(chunk), int(block)}
	}
	return list, nil
}

// chunk returns the chunk of a frame and the number of bytes of its data. There is no chunk if all values are zero.
// Products of lengths are limited, as they come from the file.
func (f *frame) chunk() (*chunk2, uint64, error) {
	data := uint64(1)
	if f.axes == nil {
		data = f.data
	}
	for _, a := range f.axes {
		if data *= uint64(a.length); data > 1<<40 {
			return nil, 0, errFrame
		}
	}
	if f.axes != nil {
		if f.element < 1 || f.element > 255 {
			return nil, 0, errFrame
		}
		data *= uint64(f.element)
	}
	if f.stored == 0 {
		return nil, data, f.allZero()
	}
	c, err := parse2(f.b[f.headerSize : f.headerSize+int(f.stored)])
	if err == nil && f.axes == nil && uint64(c.dataBytes) != data {
		err = errors.New("blosc2: frames of several chunks are not supported")
	}
	return c, data, err
}

// allZero makes sure that the index of a frame without chunks says that its values are zeros.
func (f *frame) allZero() error {
	index, err := parse2(f.b[f.headerSize:])
	if err != nil {
		return err
	}
	var place [8]byte
	if index.dataBytes != len(place) {
		return errors.New("blosc2: frames of several chunks are not supported")
	}
	if err := index.decode(place[:]); err != nil {
		return err
	}
	if kind := place[7] & 7; place[7]&0x80 == 0 || kind != specialZeros && kind != specialUninitialized {
		return errors.New("blosc2: a chunk of no known kind")
	}
	return nil
}

// blocks decodes a chunk whose blocks have several axes, and fills dst with it in C order. Blocks at the edge are
// stored padded to full size.
func (f *frame) blocks(dst []byte, c *chunk2) ([]byte, error) {
	stored, size := uint64(f.element), f.element
	for _, a := range f.axes {
		stored *= uint64((a.length-1)/a.block+1) * uint64(a.block)
		size *= a.length
		if stored > 1<<40 {
			return nil, errFrame
		}
	}
	if uint64(c.dataBytes) != stored || stored > uint64(2*len(dst)+1<<20)*8 {
		return nil, errFrame
	}
	dst = dst[:size]
	if c.dataBytes == size && f.oneRow() {
		return dst, c.decode(dst)
	}
	b := make([]byte, c.dataBytes)
	if err := c.decode(b); err != nil {
		return nil, err
	}
	f.place(dst, b)
	return dst, nil
}

// oneRow reports whether the blocks, one after the other, are the chunk in C order: one axis is divided, and all axes
// before it have blocks of one element.
func (f *frame) oneRow() bool {
	whole := true // no later axis is divided
	for i := len(f.axes) - 1; i >= 0; i-- {
		a := f.axes[i]
		if a.length%a.block != 0 || !whole && a.block != 1 {
			return false
		}
		whole = whole && a.length == a.block
	}
	return true
}

// place copies the rows of all blocks to their places in the chunk.
func (f *frame) place(dst, src []byte) {
	n := len(f.axes)
	at, in := make([]int, n), make([]int, n) // the block's first element, and the row in it
	for len(src) > 0 {
		inside, to := true, 0
		for i, a := range f.axes {
			inside = inside && at[i]+in[i] < a.length
			to = to*a.length + at[i] + in[i]
		}
		last := f.axes[n-1]
		if inside {
			count := min(last.block, last.length-at[n-1])
			copy(dst[to*f.element:], src[:count*f.element])
		}
		src = src[last.block*f.element:]
		if !f.advance(in, n-2, func(i int) (step, end int) { return 1, f.axes[i].block }) {
			f.advance(at, n-1, func(i int) (step, end int) { return f.axes[i].block, f.axes[i].length })
		}
	}
}

// advance counts up on the axes up to last, the last one fastest. It returns false if all counters are back at 0.
func (f *frame) advance(at []int, last int, limit func(i int) (step, end int)) bool {
	for i := last; i >= 0; i-- {
		step, end := limit(i)
		if at[i] += step; at[i] < end {
			return true
		}
		at[i] = 0
	}
	return false
}
