package jpeg

import (
	"cmp"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// begin prepares to decode data, the file whose header is h. For a file in several scans it decodes
// all coefficients. Buffers of earlier files are reused. Their Huffman tables stay built, but count
// as not defined until this file defines them or the standard ones are needed.
func (j *decoder) begin(h *header, data []byte) error {
	j.h, j.data, j.restart = *h, data, 0
	j.quantSet = [4]bool{}
	for i := range 4 {
		j.dc[i].defined, j.ac[i].defined = false, false
	}
	j.fx, j.fy = 1, 1
	for _, c := range h.comp[:h.n] {
		j.fx, j.fy = max(j.fx, int(c.h)), max(j.fy, int(c.v))
	}
	if h.n == 1 { // one component is never interleaved: its factors mean nothing
		j.fx, j.fy = 1, 1
	}
	j.unitsX = (h.w + 8*j.fx - 1) / (8 * j.fx)
	j.unitsY = (h.h + 8*j.fy - 1) / (8 * j.fy)
	j.buffered = h.severalScans()
	for i := range h.n {
		if err := j.layOut(i); err != nil {
			return err
		}
	}
	j.smooth = false
	if !j.buffered {
		return nil
	}
	err := j.readAllScans()
	j.smooth = err == nil && j.guesses()
	return err
}

// rewind makes the first row of units the next row to decode. Where coefficients are not kept, it
// goes back to the start of the file: the tables before the scan are read again.
func (j *decoder) rewind() error {
	j.decoded = 0
	if j.buffered {
		return nil
	}
	_, err := j.toScan(2)
	return err
}

// decodeUnits brings rows of units into the planes, from first to last, with the samples for output
// columns [x0, x1) at least. It never goes back: the coefficients of rows before first are decoded
// if they were not decoded yet, as a stream cannot skip them, but such rows are not transformed.
// Rows that were decoded before are skipped.
func (j *decoder) decodeUnits(first, last, x0, x1 int) error {
	for i := range j.h.n {
		j.comp[i].want(x0, x1)
	}
	for ; j.decoded <= last; j.decoded++ {
		if !j.buffered {
			if err := j.readUnitRow(); err != nil {
				return err
			}
		}
		if j.decoded < first {
			continue
		}
		for i := range j.h.n {
			if j.smooth {
				j.transformSmooth(j.decoded, i)
			} else {
				j.comp[i].transform(j.decoded, j.buffered)
			}
		}
	}
	return nil
}

// readUnitRow decodes the coefficients of the next row of units over the coefficients of the row
// before.
func (j *decoder) readUnitRow() error {
	for _, c := range j.scan {
		clear(c.coefs)
		if err := cmp.Or(c.dcTab.check(), c.acTab.check()); err != nil {
			return err
		}
	}
	j.aim(0)
	if !j.readUnits(j.unitsX) {
		return j.corruptAt(j.decoded * 8 * j.fy)
	}
	return nil
}

// readUnits decodes the next n units of the row at which aim has pointed the blocks. It returns
// false if the data makes no sense, or ends.
func (j *decoder) readUnits(n int) bool {
	for n > 0 {
		m := j.nextUnits(n)
		if m == 0 || !j.bits.units(j.blocks, m) {
			return false
		}
		n -= m
	}
	return !j.bits.overrun()
}

// aim points blocks at the first unit in row y of the current scan, where y is 0 if coefs holds
// only one row of units. A scan of one component has units of one block, whatever the sampling
// factors (T.81 A.2.2).
func (j *decoder) aim(y int) {
	j.blocks = j.blocks[:0]
	for _, c := range j.scan {
		hs, vs := c.hs, c.vs
		if len(j.scan) == 1 {
			hs, vs = 1, 1
		}
		for v := range vs {
			for h := range hs {
				j.blocks = append(j.blocks, unitBlock{
					coefs: c.coefs, any: c.ac, dc: c.dcTab, ac: c.acTab, pred: &c.pred,
					place: (y*vs+v)*c.blocksX + h, step: hs,
				})
			}
		}
	}
}

// readAllScans decodes all scans of an image whose coefficients or components come in several
// scans. Each component must be in at least one scan.
func (j *decoder) readAllScans() error {
	pos, err := j.toScan(2)
	for scans := 0; pos > 0 && err == nil; scans++ {
		if err = j.readScan(j.data[pos-3 : pos]); err != nil {
			return err
		}
		pos, err = j.toScan(SkipEntropy(j.data, pos))
	}
	for i := range j.h.n {
		c := &j.comp[i]
		if err == nil && !c.latched {
			return format.Corrupt(format.JPEG, "component %d is in no scan", i)
		}
	}
	if j.h.progressive() {
		for i := range j.h.n {
			j.comp[i].noteFlat()
		}
	}
	j.decoded = 0
	return err
}

// noteFlat sets ac of a progressive frame: which blocks have coefficients besides the first, after
// all scans.
func (c *component) noteFlat() {
	for i, set := range c.set {
		c.ac[i] = set>>1 != 0
	}
}

// readScan decodes one scan into the components' coefs. params are the last three bytes of its
// header (T.81 B.2.3): the first and the last coefficient of the band, and the two numbers of
// successive approximation, Ah and Al. A sequential scan always brings all coefficients, whatever
// its params say, as for libjpeg.
//
// For a progressive frame the rules of T.81 G.1.1.1 hold: first coefficients have scans of their
// own, a scan of others has one component, and a refinement brings exactly the next bit.
func (j *decoder) readScan(params []byte) error {
	s := progressiveScan{
		r: &j.bits, first: int(params[0]), last: int(params[1]),
		low: int(params[2] & 15), refine: params[2]>>4 != 0,
	}
	if !j.h.progressive() {
		s.first, s.last, s.low, s.refine = 0, 63, 0, false
	} else if s.first > s.last || s.last > 63 || s.low > 13 || (s.first == 0) != (s.last == 0) || s.first > 0 &&
		len(j.scan) > 1 ||
		s.refine && int(params[2]>>4) != s.low+1 {
		return format.Corrupt(format.JPEG, "a scan of coefficients %d to %d, bit %d after %d, of %d components", s.first,
			s.last, s.low, params[2]>>4, len(j.scan))
	}
	if err := j.checkTables(&s); err != nil {
		return err
	}
	across, down := j.unitsX, j.unitsY
	if len(j.scan) == 1 {
		across, down = j.scan[0].across, j.scan[0].down
	}
	for y := range down {
		if !j.scanRow(&s, across, y) {
			return j.corruptAt(y * j.h.h / down)
		}
	}
	return nil
}

// scanRow decodes the n units in row y of a scan. A restart marker ends a run of blocks without
// coefficients (s.ended).
func (j *decoder) scanRow(s *progressiveScan, n, y int) bool {
	if !j.h.progressive() {
		j.aim(y)
		return j.readUnits(n)
	}
	for x := 0; x < n; {
		if j.restart > 0 && j.untilReset == 0 {
			s.ended = 0
		}
		m := j.nextUnits(n - x)
		if m == 0 || !j.scanUnits(s, x, y, m) {
			return false
		}
		x += m
	}
	return !j.bits.overrun()
}

// scanUnits decodes n units of a progressive scan, from column x of row y on. In a scan of one
// component a unit is one block.
func (j *decoder) scanUnits(s *progressiveScan, x, y, n int) bool {
	if len(j.scan) == 1 {
		c := j.scan[0]
		return s.blocks(c, y*c.blocksX+x, n)
	}
	for ; n > 0; x, n = x+1, n-1 {
		for _, c := range j.scan {
			for v := range c.vs {
				if !s.blocks(c, (y*c.vs+v)*c.blocksX+x*c.hs, c.hs) {
					return false
				}
			}
		}
	}
	return true
}

// checkTables returns an error if a Huffman table that scan s needs is missing or bad. A refinement
// of first coefficients needs no table.
func (j *decoder) checkTables(s *progressiveScan) error {
	for _, c := range j.scan {
		if s.first == 0 && !s.refine {
			if err := c.dcTab.check(); err != nil {
				return err
			}
		}
		if s.last > 0 {
			if err := c.acTab.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// want sets first and last: the blocks of a row that the output columns [x0, x1) need, and the
// samples beside them that the triangle filter looks at.
func (c *component) want(x0, x1 int) {
	c.first = max(x0/c.plane.fx-1, 0) / 8 &^ 1
	c.last = min((x1-1)/c.plane.fx+1, c.plane.w-1) / 8
}

// transform turns the blocks first to last of one row of units into samples of the plane. Rows of
// blocks below the image are left out; such rows exist only because units are whole.
func (c *component) transform(unitRow int, buffered bool) {
	for v := range c.vs {
		row := unitRow*c.vs + v
		if row >= c.down {
			return
		}
		at := v * c.blocksX
		if buffered {
			at = row * c.blocksX
		}
		for x := c.first; x <= c.last; x += 2 {
			b := at + x
			dst := c.plane.pix[8*row%c.plane.held*c.plane.stride+8*x:]
			coefs := (*[128]int16)(c.coefs[64*b:])
			if !c.ac[b] && !c.ac[b+1] {
				flatPair(dst, c.plane.stride, coefs, int32(c.quant[0]))
			} else {
				idctPair(dst, c.plane.stride, coefs, &c.quant)
			}
		}
	}
}

// transformSmooth is transform for component i of a file that lacks coefficients. The guesses go
// into a copy: coefs must keep what the file has, from which the neighbors are guessed.
func (j *decoder) transformSmooth(unitRow, i int) {
	c, s := &j.comp[i], j.smoother(i)
	for v := range c.vs {
		row := unitRow*c.vs + v
		if row >= c.down {
			return
		}
		rows := s.rows(row)
		for x := c.first; x <= c.last; x += 2 {
			var coefs [128]int16
			s.block((*[64]int16)(coefs[:]), x, &rows)
			s.block((*[64]int16)(coefs[64:]), x+1, &rows)
			idctPair(c.plane.pix[8*row%c.plane.held*c.plane.stride+8*x:], c.plane.stride, &coefs, &c.quant)
		}
	}
}
