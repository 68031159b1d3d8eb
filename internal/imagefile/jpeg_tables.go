package imagefile

import "encoding/binary"

// toScan reads segments from pos on, up to and including the next scan header, and makes
// the reader stand at its data. It returns where that is, or 0 at the end of the image.
func (j *jpegDecoder) toScan(pos int) (int, error) {
	for {
		m, next, ok := nextMarker(j.data, pos)
		if !ok || m == mEOI {
			return 0, nil
		}
		if isStandalone(m) {
			pos = next
			continue
		}
		seg, end, err := segment(j.data, m, next)
		if err != nil {
			return 0, err
		}
		switch pos = end; m {
		case mDQT:
			err = j.readQuant(seg)
		case mDHT:
			err = j.readHuffman(seg)
		case mDRI:
			j.restart, err = restartInterval(seg)
		case mSOS:
			j.bits.start(j.data, end)
			return end, j.readScanHeader(seg)
		}
		if err != nil {
			return 0, err
		}
	}
}

func (j *jpegDecoder) readQuant(seg []byte) error {
	for len(seg) > 0 {
		id, wide := int(seg[0]&15), min(int(seg[0]>>4), 1)
		size := 64 << wide
		if id > 3 || len(seg) < 1+size {
			return corrupt(JPEG, "malformed quantisation table")
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

func (j *jpegDecoder) readHuffman(seg []byte) error {
	for len(seg) > 0 {
		if len(seg) < 17 || seg[0]&0xEF > 3 {
			return corrupt(JPEG, "malformed Huffman table")
		}
		n := 0
		for _, c := range seg[1:17] {
			n += int(c)
		}
		if n > 256 || len(seg) < 17+n {
			return corrupt(JPEG, "malformed Huffman table")
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

// maxUnitBlocks is the limit of T.81 B.2.3 for scans of several components.
const maxUnitBlocks = 10

// readScanHeader finds the components of a scan and their tables.
func (j *jpegDecoder) readScanHeader(seg []byte) error {
	n := 0
	if len(seg) > 0 {
		n = int(seg[0])
	}
	if n < 1 || n > j.h.n || len(seg) != 4+2*n {
		return corrupt(JPEG, "malformed scan header")
	}
	j.scan = j.scan[:0]
	blocks := 0
	for i := range n {
		id, tables := seg[1+2*i], seg[2+2*i]
		c := j.component(id)
		if c == nil {
			return corrupt(JPEG, "a scan names component %d, which the frame has not, or twice", id)
		}
		if blocks += c.hs * c.vs; n > 1 && blocks > maxUnitBlocks {
			return corrupt(JPEG, "sampling factors make units of more than %d blocks", maxUnitBlocks)
		}
		if tables>>4 > 3 || tables&15 > 3 {
			return corrupt(JPEG, "a scan names Huffman tables %d and %d", tables>>4, tables&15)
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

// component returns the one of that id that the scan has not yet, nil if there is none.
func (j *jpegDecoder) component(id byte) *component {
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

// latch keeps the quantisation table that a component's first scan finds.
func (j *jpegDecoder) latch(c *component) error {
	c.pred = 0
	if c.latched {
		return nil
	}
	for i := range j.h.n {
		if c == &j.comp[i] {
			tq := j.h.comp[i].tq
			if !j.quantSet[tq] {
				return corrupt(JPEG, "quantisation table %d is missing", tq)
			}
			c.quant, c.latched = j.quant[tq], true
		}
	}
	return nil
}
