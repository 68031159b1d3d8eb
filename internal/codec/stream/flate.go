package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/codec/filter"
)

// flate inflates streams of zlib and gzip (RFC 1950, 1951, 1952) that are in memory, to memory of the right
// size. Because it knows both ends, it is about twice as fast as a streaming decoder: it loads 8 bytes at a
// time and writes straight to the destination. The zero value is ready for use; it holds 12 KB.
type flate struct {
	lit     [litEntries]uint32
	dist    [distEntries]uint32
	pre     [preEntries]uint32
	lengths [288 + 32]uint8

	in, out []byte
	at      int    // next byte of in
	done    int    // bytes of out that are written
	buf     uint64 // bits that were loaded, the next one lowest
	bits    uint   // number of valid bits in buf; above them are bits that will be loaded again, or zeros
	past    int    // zero bytes that were loaded after the end of in
}

var (
	errCut      = errors.New("the stream is cut")
	errCode     = errors.New("an impossible code")
	errDistance = errors.New("a copy of what is before the first byte")
	errMore     = errors.New("more bytes than there should be")
	errTables   = errors.New("codes of impossible lengths")
	errStored   = errors.New("a stored block of two lengths")
	errBlock    = errors.New("a block of unknown type")
)

// Inflate fills out from a zlib stream, whose checksum it verifies. Bytes after the stream are ignored, as in
// libhdf5.
func (f *flate) Inflate(out, in []byte) error {
	n, err := f.zlib(out, in)
	if err == nil && n != len(out) {
		err = fmt.Errorf("only %d of %d bytes", n, len(out))
	}
	return err
}

// zlib is Inflate for streams of at most len(out) bytes of data. It returns the number of bytes.
func (f *flate) zlib(out, in []byte) (n int, err error) {
	if len(in) < 2 || in[0]&15 != 8 || in[0] > 0x7f || in[1]&0x20 != 0 || binary.BigEndian.Uint16(in)%31 != 0 {
		return 0, errors.New("no zlib stream")
	}
	n, in, err = f.blocks(out, in[2:])
	switch {
	case err != nil:
		return n, err
	case len(in) < 4:
		return n, fmt.Errorf("after the last byte: %w", errCut)
	}
	return n, checksum(filter.Adler32(out[:n]), binary.BigEndian.Uint32(in))
}

func checksum(sum, stored uint32) error {
	if sum != stored {
		return fmt.Errorf("checksum is %08x, stored is %08x", sum, stored)
	}
	return nil
}

// blocks decodes the blocks at the start of in. It returns the number of decoded bytes, and the rest of in.
func (f *flate) blocks(out, in []byte) (n int, rest []byte, err error) {
	f.in, f.out, f.at, f.done = in, out, 0, 0
	f.buf, f.bits, f.past = 0, 0, 0
	defer func() { f.in, f.out = nil, nil }()
	for last := false; !last; {
		if last, err = f.block(); err != nil {
			return f.done, nil, fmt.Errorf("after %d of %d bytes: %w", f.done, len(out), err)
		}
	}
	if !f.align() {
		return f.done, nil, fmt.Errorf("after the last byte: %w", errCut)
	}
	return f.done, in[f.at:], nil
}

// need makes sure that buf has 32 bits. After the end of in they are zeros, which cut detects later: a check for each
// bit would cost more.
func (f *flate) need() {
	for f.bits < 32 {
		if f.at < len(f.in) {
			f.buf |= uint64(f.in[f.at]) << f.bits
			f.at++
		} else {
			f.past++
		}
		f.bits += 8
	}
}

// take returns the next n bits, which need must have loaded.
func (f *flate) take(n uint) uint32 {
	v := uint32(f.buf) & (1<<n - 1)
	f.drop(n)
	return v
}

func (f *flate) drop(n uint) {
	f.buf >>= n & codeMask
	f.bits -= n
}

// cut reports whether bits after the end of in were used.
func (f *flate) cut() bool { return uint(f.past)*8 > f.bits }

// align goes back to the first byte of in of which no bit was used. It fails if bits after the end of in were used.
func (f *flate) align() bool {
	if f.cut() {
		return false
	}
	f.at -= int(f.bits/8) - f.past
	f.buf, f.bits, f.past = 0, 0, 0
	return true
}

// block decodes one block and reports whether it is the last block.
func (f *flate) block() (last bool, err error) {
	f.need()
	last = f.take(1) == 1
	switch f.take(2) {
	case 0:
		return last, f.storedBlock()
	case 1:
		f.fixedTables()
	case 2:
		if err := f.readTables(); err != nil {
			return last, err
		}
	default:
		return last, errBlock
	}
	return last, f.symbols()
}

// storedBlock copies a block that is not compressed (RFC 1951, 3.2.4). Its length is stored twice, once inverted.
func (f *flate) storedBlock() error {
	if !f.align() || len(f.in)-f.at < 4 {
		return errCut
	}
	n := int(binary.LittleEndian.Uint16(f.in[f.at:]))
	if n != int(^binary.LittleEndian.Uint16(f.in[f.at+2:])) {
		return errStored
	}
	f.at += 4
	switch {
	case n > len(f.in)-f.at:
		return errCut
	case n > len(f.out)-f.done:
		return errMore
	}
	copy(f.out[f.done:], f.in[f.at:f.at+n])
	f.at, f.done = f.at+n, f.done+n
	return nil
}

// fixedTables builds the tables of blocks with fixed codes (RFC 1951, 3.2.6). Codes 286, 287, 30 and 31 take part in
// the construction although no stream may have them.
func (f *flate) fixedTables() {
	l := f.lengths[:]
	for i := range l {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		case i < 288:
			l[i] = 8
		default:
			l[i] = 5
		}
	}
	buildTable(f.lit[:], litBits, l[:288], litSymbols[:])
	buildTable(f.dist[:], distBits, l[288:], distSymbols[:])
}

// preOrder is the order in which a block stores the lengths of the codes for code lengths (RFC 1951, 3.2.7).
var preOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// readTables reads the codes of a block and builds their tables.
func (f *flate) readTables() error {
	f.need()
	lits, dists, pres := int(f.take(5))+257, int(f.take(5))+1, int(f.take(4))+4
	if lits > 286 || dists > 30 {
		return errTables
	}
	var pre [19]uint8
	for _, i := range preOrder[:pres] {
		f.need()
		pre[i] = uint8(f.take(3))
	}
	if !buildTable(f.pre[:], preBits, pre[:], preSymbols[:]) {
		return errTables
	}
	if err := f.readLengths(f.lengths[:lits+dists]); err != nil {
		return err
	}
	l := f.lengths[:lits+dists]
	if l[256] == 0 || !buildTable(f.lit[:], litBits, l[:lits], litSymbols[:]) ||
		!buildTable(f.dist[:], distBits, l[lits:], distSymbols[:]) {
		return errTables
	}
	return nil
}

// readLengths reads lengths of codes, which may be run-length encoded.
func (f *flate) readLengths(l []uint8) error {
	for i := 0; i < len(l); {
		f.need()
		e := f.pre[f.buf&(1<<preBits-1)]
		if e&isRest != 0 || f.cut() {
			return errTables
		}
		f.drop(uint(e & codeMask))
		n, value := 1, uint8(e>>16)
		switch value {
		case 16:
			if i == 0 {
				return errTables
			}
			n, value = 3+int(f.take(2)), l[i-1]
		case 17:
			n, value = 3+int(f.take(3)), 0
		case 18:
			n, value = 11+int(f.take(7)), 0
		}
		if n > len(l)-i {
			return errTables
		}
		for range n {
			l[i] = value
			i++
		}
	}
	return nil
}
