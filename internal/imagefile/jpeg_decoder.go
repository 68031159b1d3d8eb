package imagefile

import (
	"slices"

	"github.com/penstock/penstock/internal/pixel"
)

// jpegDecoder turns the bytes of one JPEG into the planes of its components, as libjpeg
// does with JDCT_ISLOW, bit for bit: sequential and progressive frames of 8 bits, Huffman-coded.
//
// A plain sequential image is decoded row of units (MCUs) by row of units, when its pixels
// are asked for. Where components come in several scans, all coefficients are read first.
type jpegDecoder struct {
	h          jpegHeader
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
	plane
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

// begin prepares to decode the file whose header is h. Buffers of earlier files are reused.
func (j *jpegDecoder) begin(h *jpegHeader, data []byte) error {
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

// layOut sets up component i.
func (j *jpegDecoder) layOut(i int) error {
	c := &j.comp[i]
	c.hs, c.vs = int(j.h.comp[i].h), int(j.h.comp[i].v)
	if j.h.n == 1 {
		c.hs, c.vs = 1, 1
	}
	if j.fx%c.hs != 0 || j.fy%c.vs != 0 {
		return unsupported(JPEG, "sampling factors %dx%d of component %d do not divide the largest, %dx%d", c.hs, c.vs, i, j.fx, j.fy)
	}
	c.fx, c.fy = j.fx/c.hs, j.fy/c.vs
	c.w = (j.h.w*c.hs + j.fx - 1) / j.fx
	c.h = (j.h.h*c.vs + j.fy - 1) / j.fy
	c.across, c.down = (c.w+7)/8, (c.h+7)/8
	c.blocksX = (j.unitsX*c.hs + 1) &^ 1
	c.stride, c.held = 8*c.blocksX, 8*c.vs*keptUnits
	c.fancy = c.triangle()
	c.latched = false
	c.pix = pixel.Grow(c.pix, c.held*c.stride)
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

// rewind makes the next row of units the first, of a file that is not buffered.
func (j *jpegDecoder) rewind() error {
	j.decoded = 0
	if j.buffered {
		return nil
	}
	_, err := j.toScan(2)
	return err
}

// nextUnits is called before at most n units of a scan: it takes a restart marker off the
// stream where one is due, and returns how many of the units may be read before the next. That
// is 0 if the marker is not there.
func (j *jpegDecoder) nextUnits(n int) int {
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
func (j *jpegDecoder) corruptAt(row int) error {
	what := "invalid entropy-coded data"
	if j.bits.overrun() {
		what = "the data ends before the image does"
	}
	return corrupt(JPEG, "corrupt near row %d of %d, at byte %d: %s", min(row, j.h.h-1), j.h.h, j.bits.pos, what)
}
