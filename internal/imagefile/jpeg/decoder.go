package jpeg

import (
	"slices"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/pixel"
)

// decoder turns the bytes of one JPEG into the planes of its components, as libjpeg
// does with JDCT_ISLOW, bit for bit: sequential and progressive frames of 8 bits, Huffman-coded.
//
// A plain sequential image is decoded row of units (MCUs) by row of units, when its pixels are
// asked for. If components come in several scans, all coefficients are read first.
type decoder struct {
	h          header
	data       []byte
	quant      [4][64]uint16 // by rows
	quantSet   [4]bool
	dc, ac     [4]huffTable
	comp       [4]component
	fx, fy     int // samples of the densest component in a unit, in blocks: hmax, vmax
	unitsX     int
	unitsY     int
	restart    int  // units between restart markers as of the current scan
	buffered   bool // all coefficients are kept
	bits       bitReader
	scan       []*component // of the current scan
	blocks     []unitBlock  // of one of its units
	untilReset int          // units left in the restart interval
	resets     int
	decoded    int  // rows of units that are through
	smooth     bool // coefficients are guessed
}

// component is one component's way from coefficients to samples.
type component struct {
	plane        plane
	hs, vs       int // blocks in a unit across and down
	across, down int // blocks that hold true samples
	first, last  int // blocks of a row that are wanted; first is even
	blocksX      int // blocks in a row of coefs: even, whole units
	coefs        []int16
	ac           []bool   // which blocks have more than a first coefficient
	set          []uint64 // of each block of a progressive frame, the coefficients that are not 0, by zigzag
	quant        [64]uint16
	latched      bool // quant is set, by the component's first scan
	pred         int32
	dcTab, acTab *huffTable
}

// layOut sets up component i.
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

// nextUnits is called before at most n units of a scan: it takes a restart marker off the
// stream where one is due, and returns how many of the units may be read before the next. That
// is 0 if the marker is not there.
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

// corruptAt returns the error of data that stop making sense near a row.
func (j *decoder) corruptAt(row int) error {
	what := "invalid entropy-coded data"
	if j.bits.overrun() {
		what = "the data ends before the image does"
	}
	return format.Corrupt(format.JPEG, "corrupt near row %d of %d, at byte %d: %s", min(row, j.h.h-1), j.h.h, j.bits.pos,
		what)
}
