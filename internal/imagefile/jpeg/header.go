package jpeg

import (
	"bytes"
	"encoding/binary"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// maxScans limits the scans of a file. Encoders make about ten; a scan of a few bytes can cost as
// much time as a whole image, so that a small hostile file could keep a worker busy for long.
const maxScans = 200

// checkSize refuses a file that is too small for the size that its header claims, before memory is
// taken for the pixels. bytes are those after the first scan's marker. A block takes at least a bit
// for its first coefficient and, if the frame is sequential, one for its end.
func (h *header) checkSize(bytes int) error {
	hmax, vmax, perUnit := 1, 1, 0
	for _, c := range h.comp[:h.n] {
		hmax, vmax, perUnit = max(hmax, int(c.h)), max(vmax, int(c.v)), perUnit+int(c.h)*int(c.v)
	}
	if h.n == 1 {
		hmax, vmax, perUnit = 1, 1, 1
	}
	units := ((h.w + 8*hmax - 1) / (8 * hmax)) * ((h.h + 8*vmax - 1) / (8 * vmax))
	bits := units // files in several scans leave padding blocks out: only one block in a unit is certain
	if !h.severalScans() {
		bits = 2 * units * perUnit
	}
	if bits > 8*bytes {
		return format.Corrupt(format.JPEG, "truncated, or corrupt in its header: %d bytes cannot hold %dx%d pixels", bytes,
			h.w, h.h)
	}
	return nil
}

// checkEnd walks the scans from the first on, without decoding them. It returns an error if the
// file ends before its end-of-image marker, begins a second image or frame, or has more than
// maxScans scans. Bytes after that marker are ignored. It also notes in missing which bits of
// coefficients no scan brings.
func (h *header) checkEnd(data []byte) error {
	pos, scan := h.scan, 0
	for i := range h.missing {
		for k := range h.missing[i] {
			h.missing[i][k] = -1
		}
	}
	for {
		m, next, ok := NextSegment(data, pos)
		switch {
		case !ok && scan > 0:
			return format.Corrupt(format.JPEG, "truncated at byte %d of scan %d: the file ends before the image does", len(data),
				scan)
		case !ok:
			return format.Corrupt(format.JPEG, "truncated at byte %d: the file ends before the image does", len(data))
		case m == EOI:
			return nil
		case m == SOI:
			return format.Corrupt(format.JPEG, "a second image starts at byte %d, before the first has ended", next-2)
		case IsStandalone(m):
			pos = next
			continue
		}
		seg, end, err := Segment(data, m, next)
		if err != nil {
			return err
		}
		if IsFrame(m) {
			return format.Corrupt(format.JPEG, "two frame headers, the second at byte %d", next-2)
		}
		if pos = end; m == SOS {
			if scan++; scan > maxScans {
				return format.Corrupt(format.JPEG, "more than %d scans", maxScans)
			}
			h.noteScan(seg)
			pos = SkipEntropy(data, end)
		}
	}
}

// frameComponent is a component's entry in the frame header: its identifier, its sampling factors
// across and down, and the number of its quantisation table.
type frameComponent struct {
	id, h, v byte
	tq       byte
}

// header has the contents of the segments before the first scan, except for tables, which the
// decoder reads when it starts.
type header struct {
	w, h        int
	bits        int  // of a sample
	sof         byte // the frame's marker, which says how it is coded; 0 before it is read
	n           int  // components
	comp        [4]frameComponent
	jfif        bool // the file has a JFIF segment: three components are YCbCr
	adobe       bool // the file has a segment of Adobe, with its transform: 0 for RGB or CMYK, else YCbCr or YCCK
	transform   byte
	restart     int // units between restart markers, 0 for none
	orientation int // of EXIF, 1 to 8; 0 if there is none
	scan        int // where the first SOS marker lies, in bytes
	scanComps   int // components in the first scan

	// missing says, for a progressive frame, how many low bits of a component's first coefficients
	// (in zigzag order) the file does not bring: 0 if all are known, -1 if the coefficient is in no
	// scan. checkEnd fills it in.
	missing [4][guessed]int8
}

// parse reads the markers from the start of the file up to the first scan. What it has read until
// an error is returned with the error.
func parse(data []byte) (header, error) {
	var h header
	pos := 2 // after SOI, which Sniff saw
	for {
		m, next, ok := NextSegment(data, pos)
		if !ok {
			return h, format.Corrupt(format.JPEG, "truncated at byte %d: the file ends before the first scan", len(data))
		}
		if IsStandalone(m) {
			switch m {
			case EOI:
				return h, format.Corrupt(format.JPEG, "holds no image: end-of-image marker at byte %d, before any scan", next-2)
			case SOI:
				return h, format.Corrupt(format.JPEG, "a second image starts at byte %d, before the first has", next-2)
			}
			pos = next
			continue
		}
		seg, end, err := Segment(data, m, next)
		if err != nil {
			return h, err
		}
		if m == SOS {
			h.scan = next - 2
			return h, h.startScan(seg)
		}
		if err := h.add(m, seg); err != nil {
			return h, err
		}
		pos = end
	}
}

// add takes in the segment seg of marker m. Tables are skipped: they may change between scans, so
// that the decoder reads them in order (toScan).
func (h *header) add(m byte, seg []byte) error {
	switch {
	case m == DRI:
		n, err := restartInterval(seg)
		h.restart = n
		return err
	case m == APP0:
		h.jfif = h.jfif || len(seg) >= 14 && bytes.HasPrefix(seg, []byte("JFIF\x00"))
	case m == APP1 && h.orientation == 0:
		h.orientation = format.APP1Orientation(seg)
	case m == APP14 && len(seg) >= 12 && bytes.HasPrefix(seg, []byte("Adobe")):
		h.adobe, h.transform = true, seg[11]
	case IsFrame(m):
		return h.frame(m, seg)
	}
	return nil
}

// restartInterval reads a DRI segment (T.81 B.2.4.4).
func restartInterval(seg []byte) (units int, err error) {
	if len(seg) != 2 {
		return 0, format.Corrupt(format.JPEG, "restart interval segment of %d bytes", len(seg))
	}
	return int(binary.BigEndian.Uint16(seg)), nil
}

// frame reads a frame header (T.81 B.2.2) and refuses what the decoder does not know. The errors
// for frames that are valid JPEG say how to convert the file.
func (h *header) frame(m byte, seg []byte) error {
	if h.sof != 0 {
		return format.Corrupt(format.JPEG, "two frame headers")
	}
	if len(seg) < 6 {
		return format.Corrupt(format.JPEG, "frame header of %d bytes is too short", len(seg))
	}
	h.sof, h.bits, h.n = m, int(seg[0]), int(seg[5])
	h.h, h.w = int(binary.BigEndian.Uint16(seg[1:])), int(binary.BigEndian.Uint16(seg[3:]))
	switch {
	case m == SOF9 || m == SOF10:
		return format.Unsupported(format.JPEG,
			"arithmetic-coded frames are not supported (marker ff%02x); recode it without loss: jpegtran -copy all -optimize "+
				"IN.jpg > OUT.jpg", m)
	case m > SOF2:
		return format.Unsupported(format.JPEG,
			"lossless and hierarchical frames are not supported (marker ff%02x); convert it to PNG", m)
	case h.bits != 8:
		return format.Unsupported(format.JPEG, "%d-bit samples are not supported; convert it to PNG, or to a JPEG of 8 bits",
			h.bits)
	case h.n != 1 && h.n != 3 && h.n != 4:
		return format.Unsupported(format.JPEG, "%d components are not supported; convert it to one of 1, 3 or 4", h.n)
	case len(seg) != 6+3*h.n:
		return format.Corrupt(format.JPEG, "frame header of %d bytes for %d components", len(seg), h.n)
	}
	for i := range h.n {
		c := seg[6+3*i:]
		h.comp[i] = frameComponent{id: c[0], h: c[1] >> 4, v: c[1] & 15, tq: c[2]}
		if k := h.comp[i]; k.h == 0 || k.h > 4 || k.v == 0 || k.v > 4 || k.tq > 3 {
			return format.Corrupt(format.JPEG, "component %d has sampling factors %dx%d and quantisation table %d", i, k.h, k.v,
				k.tq)
		}
	}
	return nil
}

// startScan checks the header of the first scan for its form. The frame header must have come
// before, as it says which components there are.
func (h *header) startScan(seg []byte) error {
	if h.sof == 0 {
		return format.Corrupt(format.JPEG, "a scan at byte %d, before the frame header", h.scan)
	}
	if len(seg) < 1 || seg[0] < 1 || int(seg[0]) > h.n || len(seg) != 4+2*int(seg[0]) {
		return format.Corrupt(format.JPEG, "scan header at byte %d is malformed", h.scan)
	}
	h.scanComps = int(seg[0])
	return nil
}

// progressive reports whether the coefficients of a block may come in more than one scan.
func (h *header) progressive() bool { return h.sof == SOF2 }

// severalScans reports whether the coefficients of a block, or the components, may come in
// more than one scan, so that all must be read before pixels are made.
func (h *header) severalScans() bool { return h.progressive() || h.scanComps != h.n }

// model returns the color model of the samples. It chooses as libjpeg's default_decompress_parms
// does (jdapimin.c), so that the colors are Pillow's: a JFIF segment counts more than an Adobe
// segment, and an Adobe segment more than the components' identifiers.
func (h *header) model() string {
	switch {
	case h.n == 1:
		return "gray"
	case h.n == 4 && h.adobe && h.transform != 0:
		return "ycck"
	case h.n == 4:
		return "cmyk"
	case h.jfif:
		return "ycbcr"
	case h.adobe && h.transform == 0:
		return "rgb"
	case !h.adobe && h.comp[0].id == 'R' && h.comp[1].id == 'G' && h.comp[2].id == 'B':
		return "rgb"
	}
	return "ycbcr"
}

// config returns the Config according to the header, the zero Config if no frame was read.
func (h *header) config() format.Config {
	if h.n == 0 {
		return format.Config{}
	}
	return format.Config{Width: h.w, Height: h.h, Model: h.model(), Channels: h.n, Bits: h.bits,
		Orientation: h.orientation}
}

// guessed is how many coefficients of a block, in zigzag order, smoothing may guess.
const guessed = 10

// noteScan enters into missing which coefficients the scan brings, and how many of their low bits
// it leaves to later scans. A malformed header is left for the decoder to refuse.
func (h *header) noteScan(seg []byte) {
	if !h.progressive() || len(seg) < 1 || len(seg) != 4+2*int(seg[0]) {
		return
	}
	params := seg[len(seg)-3:]
	for i := range int(seg[0]) {
		for c := range h.n {
			if h.comp[c].id == seg[1+2*i] {
				for k := int(params[0]); k <= int(params[1]) && k < guessed; k++ {
					h.missing[c][k] = int8(params[2] & 15)
				}
				break
			}
		}
	}
}

// Config returns the size and kind of the image, from the segments before its first scan. It does
// not check that the scans are there.
func Config(data []byte) (format.Config, error) {
	h, err := parse(data)
	return h.config(), err
}
