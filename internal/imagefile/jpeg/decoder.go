package jpeg

import (
	"slices"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
)

// decoder turns the bytes of one JPEG into the planes of its components, as libjpeg does with
// JDCT_ISLOW, bit for bit. It knows sequential and progressive frames of 8 bits, Huffman-coded.
//
// A unit is what T.81 calls an MCU: the blocks of all components of a scan that cover one rectangle
// of the image. A sequential image of one scan is decoded one row of units after the other when its
// pixels are asked for. If coefficients or components come in several scans, begin reads all of
// them.
//
// A decoder is used again for file after file, and keeps its buffers.
type decoder struct {
	h          header
	data       []byte
	quant      [4][64]uint16 // the tables of the file, by number; each by rows, not in zigzag order
	quantSet   [4]bool       // which of quant the file has defined
	dc, ac     [4]huffTable
	comp       [4]component
	fx, fy     int  // the largest sampling factors of a component (hmax and vmax of T.81): a unit covers 8*fx x 8*fy pixels
	unitsX     int  // units in a row of the image
	unitsY     int  // rows of units
	restart    int  // units between restart markers in the current scan, 0 for none
	buffered   bool // coefs of the components hold the whole image, not one row of units
	bits       bitReader
	scan       []*component // the components of the current scan, in the order of its header
	blocks     []unitBlock  // the blocks of one unit of the current scan
	untilReset int          // units left until the next restart marker
	resets     int          // restart markers passed in the current scan; their numbers count modulo 8
	decoded    int          // the next row of units that decodeUnits will do
	smooth     bool         // the file lacks coefficients, which are guessed as libjpeg does
}

// component is the decoder's state of one component: its coefficients, as many as are needed at a
// time, and the plane of samples that they become.
type component struct {
	plane        plane
	hs, vs       int        // blocks in a unit, across and down
	across, down int        // blocks that hold samples of the image, not only padding
	first, last  int        // blocks of a row that decodeUnits transforms; first is even, as blocks are done in pairs
	blocksX      int        // blocks in a row of coefs: whole units, rounded up to an even number for pairs
	coefs        []int16    // 64 for each block, by rows
	ac           []bool     // by block: whether it may have coefficients besides the first
	set          []uint64   // by block of a progressive frame: bit k for the k-th coefficient in zigzag order if it is not 0
	quant        [64]uint16 // by rows; of the component's first scan, as later ones may have replaced the decoder's table
	latched      bool       // quant is set
	pred         int32      // the first coefficient of the block before, to which that of the next is a difference
	dcTab, acTab *huffTable
}

// layOut computes the sizes of component i and makes room for its coefficients and samples. Factors
// that do not divide the largest are refused: upsampling by a fraction is not written.
func (j *decoder) layOut(i int) error {
	c := &j.comp[i]
	c.hs, c.vs = int(j.h.comp[i].h), int(j.h.comp[i].v)
	if j.h.n == 1 {
		c.hs, c.vs = 1, 1
	}
	if j.fx%c.hs != 0 || j.fy%c.vs != 0 {
		return format.Unsupported(format.JPEG, "sampling factors %dx%d of component %d do not divide the largest, %dx%d",
			c.hs, c.vs, i, j.fx, j.fy)
	}
	c.plane.fx, c.plane.fy = j.fx/c.hs, j.fy/c.vs
	c.plane.w = (j.h.w*c.hs + j.fx - 1) / j.fx
	c.plane.h = (j.h.h*c.vs + j.fy - 1) / j.fy
	c.across, c.down = (c.plane.w+7)/8, (c.plane.h+7)/8
	c.blocksX = (j.unitsX*c.hs + 1) &^ 1
	c.plane.stride, c.plane.held = 8*c.blocksX, 8*c.vs*keptUnits
	c.plane.fancy = c.plane.triangle()
	c.latched = false
	c.plane.pix = pixel.Grow(c.plane.pix, c.plane.held*c.plane.stride)
	rows := j.unitsY * c.vs
	if !j.buffered {
		rows = c.vs
	}
	n := rows * c.blocksX
	if cap(c.coefs) < 64*n {
		c.coefs, c.ac = make([]int16, 64*n), make([]bool, n)
	}
	c.coefs, c.ac = c.coefs[:64*n], c.ac[:n]
	if j.buffered {
		clear(c.coefs)
		clear(c.ac)
	}
	if j.h.progressive() {
		c.set = slices.Grow(c.set[:0], n)[:n]
		clear(c.set)
	}
	return nil
}

// nextUnits is called before a caller reads at most n units of a scan. Where a restart marker is
// due, it takes the marker off the stream and resets the predictions. It returns how many of the n
// units come before the next marker, or 0 if the marker that is due is missing.
func (j *decoder) nextUnits(n int) int {
	if j.restart == 0 {
		return n
	}
	if j.untilReset == 0 {
		if !j.bits.skipRestart(j.resets & 7) {
			return 0
		}
		j.resets++
		j.untilReset = j.restart
		for _, c := range j.scan {
			c.pred = 0
		}
	}
	n = min(n, j.untilReset)
	j.untilReset -= n
	return n
}

// corruptAt returns the error for entropy-coded data that make no sense near that row of pixels.
func (j *decoder) corruptAt(row int) error {
	what := "invalid entropy-coded data"
	if j.bits.overrun() {
		what = "the data ends before the image does"
	}
	return format.Corrupt(format.JPEG, "corrupt near row %d of %d, at byte %d: %s", min(row, j.h.h-1), j.h.h, j.bits.pos,
		what)
}
