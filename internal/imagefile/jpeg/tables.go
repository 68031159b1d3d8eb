package jpeg

import (
	"encoding/binary"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// toScan reads segments from pos on, up to and including the next scan header, and makes the bit
// reader stand at its data. It returns the position of the scan's data, or 0 at the end of the
// image. Tables are replaced as they come: a scan has the tables that were read before its
// header.
func (j *decoder) toScan(pos int) (int, error) {
	for {
		m, next, ok := NextSegment(j.data, pos)
		if !ok || m == EOI {
			return 0, nil
		}
		if IsStandalone(m) {
			pos = next
			continue
		}
		seg, end, err := Segment(j.data, m, next)
		if err != nil {
			return 0, err
		}
		switch pos = end; m {
		case DQT:
			err = j.readQuant(seg)
		case DHT:
			err = j.readHuffman(seg)
		case DRI:
			j.restart, err = restartInterval(seg)
		case SOS:
			j.bits.start(j.data, end)
			return end, j.readScanHeader(seg)
		}
		if err != nil {
			return 0, err
		}
	}
}

// readQuant reads a DQT segment (T.81 B.2.4.1): tables of 8 or 16 bits, in zigzag order. A file may
// replace a table between scans.
func (j *decoder) readQuant(seg []byte) error {
	for len(seg) > 0 {
		id, wide := int(seg[0]&15), min(int(seg[0]>>4), 1)
		size := 64 << wide
		if id > 3 || len(seg) < 1+size {
			return format.Corrupt(format.JPEG, "malformed quantisation table")
		}
		for k := range 64 {
			if wide == 1 {
				j.quant[id][zigzag[k]] = binary.BigEndian.Uint16(seg[1+2*k:])
			} else {
				j.quant[id][zigzag[k]] = uint16(seg[1+k])
			}
		}
		j.quantSet[id] = true
		seg = seg[1+size:]
	}
	return nil
}

// readHuffman reads a DHT segment (T.81 B.2.4.2): for each table its class (0 for first
// coefficients, 1 for others) and number, how many codes have each length from 1 to 16, and their
// symbols.
func (j *decoder) readHuffman(seg []byte) error {
	for len(seg) > 0 {
		if len(seg) < 17 || seg[0]&0xEF > 3 {
			return format.Corrupt(format.JPEG, "malformed Huffman table")
		}
		n := 0
		for _, c := range seg[1:17] {
			n += int(c)
		}
		if n > 256 || len(seg) < 17+n {
			return format.Corrupt(format.JPEG, "malformed Huffman table")
		}
		t := &j.dc[seg[0]&3]
		if seg[0]>>4 == 1 {
			t = &j.ac[seg[0]&3]
		}
		t.build((*[16]byte)(seg[1:]), seg[17:17+n], j.h.kindOf(seg[0]>>4))
		seg = seg[17+n:]
	}
	return nil
}

// maxUnitBlocks is the limit of T.81 B.2.3 for the blocks in a unit of a scan of several
// components.
const maxUnitBlocks = 10

// readScanHeader reads a scan header (T.81 B.2.3): it sets scan to the components that are in the
// scan, and their tables. Sequential frames may use the standard Huffman tables without defining
// them.
func (j *decoder) readScanHeader(seg []byte) error {
	n := 0
	if len(seg) > 0 {
		n = int(seg[0])
	}
	if n < 1 || n > j.h.n || len(seg) != 4+2*n {
		return format.Corrupt(format.JPEG, "malformed scan header")
	}
	j.scan = j.scan[:0]
	blocks := 0
	for i := range n {
		id, tables := seg[1+2*i], seg[2+2*i]
		c := j.component(id)
		if c == nil {
			return format.Corrupt(format.JPEG, "a scan names component %d, which the frame has not, or twice", id)
		}
		if blocks += c.hs * c.vs; n > 1 && blocks > maxUnitBlocks {
			return format.Corrupt(format.JPEG, "the sampling factors give units more than %d blocks", maxUnitBlocks)
		}
		if tables>>4 > 3 || tables&15 > 3 {
			return format.Corrupt(format.JPEG, "a scan names Huffman tables %d and %d", tables>>4, tables&15)
		}
		c.dcTab, c.acTab = &j.dc[tables>>4], &j.ac[tables&15]
		if !j.h.progressive() {
			c.dcTab.orStandard(&standardDC, tables>>4, ofFirst)
			c.acTab.orStandard(&standardAC, tables&15, ofOthers)
		}
		if err := j.latch(c); err != nil {
			return err
		}
		j.scan = append(j.scan, c)
	}
	j.untilReset, j.resets = j.restart, 0
	return nil
}

// component returns the first component with that identifier that is not in the current scan yet,
// nil if the frame has no such component. Two components can have the same identifier: T.81
// forbids it, and libjpeg reads such files.
func (j *decoder) component(id byte) *component {
	for i := range j.h.n {
		if j.h.comp[i].id != id {
			continue
		}
		used := false
		for _, c := range j.scan {
			used = used || c == &j.comp[i]
		}
		if !used {
			return &j.comp[i]
		}
	}
	return nil
}

// latch starts component c in a scan. In the component's first scan it copies the quantisation
// table of that moment, which holds for the whole image (libjpeg does the same), since later scans
// may come after another table of that number.
func (j *decoder) latch(c *component) error {
	c.pred = 0
	if c.latched {
		return nil
	}
	for i := range j.h.n {
		if c == &j.comp[i] {
			tq := j.h.comp[i].tq
			if !j.quantSet[tq] {
				return format.Corrupt(format.JPEG, "quantisation table %d is missing", tq)
			}
			c.quant, c.latched = j.quant[tq], true
		}
	}
	return nil
}

// standardTable is one of the Huffman tables of T.81 annex K.3, which a file may leave out:
// frames of Motion JPEG do, and libjpeg-turbo reads them.
type standardTable struct {
	counts  [16]byte
	symbols string
}

// dcSymbols are the symbols of both standard tables for first coefficients.
const dcSymbols = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b"

// standardDC and standardAC are the tables of T.81 annex K.3, by number: 0 is for luma, 1 for
// chroma.
var (
	standardDC = [2]standardTable{
		{[16]byte{0, 1, 5, 1, 1, 1, 1, 1, 1}, dcSymbols},
		{[16]byte{0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, dcSymbols},
	}
	standardAC = [2]standardTable{
		{[16]byte{0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125}, "" +
			"\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07" +
			"\x22\x71\x14\x32\x81\x91\xa1\x08\x23\x42\xb1\xc1\x15\x52\xd1\xf0" +
			"\x24\x33\x62\x72\x82\x09\x0a\x16\x17\x18\x19\x1a\x25\x26\x27\x28" +
			"\x29\x2a\x34\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48\x49" +
			"\x4a\x53\x54\x55\x56\x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68\x69" +
			"\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x83\x84\x85\x86\x87\x88\x89" +
			"\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7" +
			"\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5" +
			"\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe1\xe2" +
			"\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8" +
			"\xf9\xfa"},
		{[16]byte{0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119}, "" +
			"\x00\x01\x02\x03\x11\x04\x05\x21\x31\x06\x12\x41\x51\x07\x61\x71" +
			"\x13\x22\x32\x81\x08\x14\x42\x91\xa1\xb1\xc1\x09\x23\x33\x52\xf0" +
			"\x15\x62\x72\xd1\x0a\x16\x24\x34\xe1\x25\xf1\x17\x18\x19\x1a\x26" +
			"\x27\x28\x29\x2a\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48" +
			"\x49\x4a\x53\x54\x55\x56\x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68" +
			"\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x82\x83\x84\x85\x86\x87" +
			"\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5" +
			"\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3" +
			"\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda" +
			"\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf2\xf3\xf4\xf5\xf6\xf7\xf8" +
			"\xf9\xfa"},
	}
)

// orStandard builds standard table number id if the file has not defined t.
func (t *huffTable) orStandard(tables *[2]standardTable, id byte, kind tableKind) {
	if !t.defined && id < 2 {
		s := &tables[id]
		t.build(&s.counts, []byte(s.symbols), kind)
	}
}
