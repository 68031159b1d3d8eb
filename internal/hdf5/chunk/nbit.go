package chunk

import (
	"fmt"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// nbit is HDF5's filter of that name: of each number the bits that count, side by side, the highest first.
//
// Its parameters, of H5Znbit.c, are their number, whether the filter does nothing, the elements of a chunk, and
// the element's type, which is one of:
//
//	1, bytes, order (1 is big endian), bits that count, lowest of them    number
//	2, bytes, type                                                       array
//	3, bytes, members, and for each its place and type                   compound
//	4, bytes                                                             kept as it is
type nbit struct {
	asStored bool
	count    int
	size     int // of an element
	parts    []nbitPart
}

// nbitPart is a number at a place of an element, or bytes that are kept unchanged.
type nbitPart struct {
	at, size  int
	big       bool
	bits, low int
	repeat    int // how many of them are side by side
}

const (
	nbitNumber = 1 + iota
	nbitArray
	nbitCompound
	nbitKept
)

// mostNbitParts limits the memory and work for the description of one element. Arrays in a description multiply its
// parts, so a few parameters could describe any number of parts.
const mostNbitParts = 1 << 16

// newNbit reads the parameters of HDF5's filter 5: a description of the element's type, as a tree written out in order,
// with the offset and the number of significant bits of each number. The description must agree with the size of a
// chunk, as both come from the file.
func newNbit(params []uint32, chunkBytes int) (Codec, error) {
	if len(params) < 5 {
		return nil, errParams
	}
	n := &nbit{asStored: params[1] != 0, count: int(params[2])}
	if n.asStored {
		return n, nil
	}
	p := nbitParser{params: params[3:]}
	n.size = p.parse(0, 0)
	n.parts = p.parts
	if p.failed || n.size <= 0 || n.count != chunkBytes/n.size || n.count*n.size != chunkBytes {
		return nil, errParams
	}
	return n, nil
}

// nbitParser reads the description of a type from the parameters of the filter.
type nbitParser struct {
	params []uint32
	parts  []nbitPart
	failed bool
}

// next returns the next parameter. Numbers above 2^30 make the parser fail: no type is so large, and sums of smaller
// ones fit an int.
func (p *nbitParser) next() int {
	if len(p.params) == 0 || p.params[0] > 1<<30 {
		p.failed = true
		return 0
	}
	x := int(p.params[0])
	p.params = p.params[1:]
	return x
}

// parse reads a type whose element starts at place at, and returns the bytes of an element. The depth is limited, as
// types nest.
func (p *nbitParser) parse(at, depth int) (size int) {
	class := p.next()
	size = p.next()
	if p.failed || depth > 8 || len(p.parts) > mostNbitParts {
		p.failed = true
		return 0
	}
	switch class {
	case nbitNumber:
		part := nbitPart{at: at, size: size, big: p.next() == 1, bits: p.next(), low: p.next(), repeat: 1}
		p.failed = p.failed || size < 1 || size > 8 || part.bits < 1 || part.bits+part.low > 8*size
		p.parts = append(p.parts, part)
	case nbitKept:
		p.parts = append(p.parts, nbitPart{at: at, size: 1, bits: 8, repeat: size})
	case nbitCompound:
		for range p.next() {
			place := p.next()
			if member := p.parse(at+place, depth+1); p.failed || place+member > size {
				p.failed = true
				return 0
			}
		}
	case nbitArray:
		p.array(at, size, depth)
	default:
		p.failed = true
	}
	return size
}

// array reads the type of an array's elements, and repeats its parts for each element.
func (p *nbitParser) array(at, size, depth int) {
	first := len(p.parts)
	base := p.parse(at, depth+1)
	if p.failed || base <= 0 || size%base != 0 {
		p.failed = true
		return
	}
	n := size / base
	if one := p.parts[first:]; len(one) == 1 && one[0].at == at && one[0].size*one[0].repeat == base {
		one[0].repeat *= n
		return
	}
	parts := p.parts[first:]
	if len(parts)*n > mostNbitParts {
		p.failed = true
		return
	}
	for i := 1; i < n; i++ {
		for _, part := range parts {
			part.at += i * base
			p.parts = append(p.parts, part)
		}
	}
}

// Expansion implements [Codec]. Chunks of elements with one significant bit grow most.
func (n *nbit) Expansion() int {
	if n.asStored {
		return 1
	}
	return mostNbit
}

// Decode implements [Codec]. Only significant bits are stored, so dst, which may hold an earlier chunk, is cleared
// first.
func (n *nbit) Decode(dst, src []byte) ([]byte, error) {
	if n.asStored {
		if len(src) > len(dst) {
			return nil, fmt.Errorf("%d bytes for a chunk of %d: %w", len(src), len(dst), meta.ErrCorrupt)
		}
		return dst[:copy(dst, src)], nil
	}
	if len(dst) < n.count*n.size {
		return nil, corrupt("a chunk of %d bytes, not of %d", n.count*n.size, len(dst))
	}
	dst = dst[:n.count*n.size]
	clear(dst)
	r := filter.BitReader{Src: src}
	for at := 0; at < len(dst) && !r.Over(); at += n.size {
		for i := range n.parts {
			n.parts[i].decode(dst[at:at+n.size], &r)
		}
	}
	if r.Over() {
		return nil, corrupt("%w", errCut)
	}
	return dst, nil
}

// decode reads the numbers of a part and writes them into an element.
func (p *nbitPart) decode(element []byte, r *filter.BitReader) {
	for i := range p.repeat {
		x := r.Next(p.bits) << p.low
		b := element[p.at+i*p.size:][:p.size]
		for k := range b {
			if p.big {
				b[len(b)-1-k] = byte(x)
			} else {
				b[k] = byte(x)
			}
			x >>= 8
		}
	}
}
