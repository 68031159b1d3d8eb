package jpeg

import (
	"bytes"
	"encoding/binary"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// maxScans is more than any encoder makes: each may take as long as an image, and a few
// bytes are enough for one.
const maxScans = 200

// checkSize refuses a file that is too small for what its header says, before memory is
// taken for that: a block takes at least a bit for its first coefficient and, if the frame
// is sequential, one for its end.
func (h *header) checkSize(bytes int) error {
	hmax, vmax, perUnit := 1, 1, 0
	for _, c := range h.comp[:h.n] {
		hmax, vmax, perUnit = max(hmax, int(c.h)), max(vmax, int(c.v)), perUnit+int(c.h)*int(c.v)
	}
	if h.n == 1 {
		hmax, vmax, perUnit = 1, 1, 1
	}
	units := ((h.w + 8*hmax - 1) / (8 * hmax)) * ((h.h + 8*vmax - 1) / (8 * vmax))
	bits := units // of a progressive file, or of one in several scans, which leave out what is padding
	if !h.severalScans() {
		bits = 2 * units * perUnit
	}
	if bits > 8*bytes {
		return format.Corrupt(format.JPEG, "truncated, or corrupt in its header: %d bytes cannot hold %dx%d pixels", bytes,
			h.w, h.h)
	}
	return nil
}

// checkEnd walks the scans from the first on, and returns an error where the file ends
// before its end-of-image marker. Bytes after that marker are ignored.
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

// frameComponent is one entry of a frame header.
type frameComponent struct {
	id, h, v byte
	tq       byte
}

// header has the segments before the first scan.
type header struct {
	w, h        int
	bits        int
	sof         byte // the frame's marker
	n           int  // components
	comp        [4]frameComponent
	jfif        bool
	adobe       bool
	transform   byte // of the Adobe segment
	restart     int  // MCUs between restart markers, 0 for none
	orientation int
	scan        int // where the first SOS marker lies
	scanComps   int // components in the first scan

	// Of a progressive frame and the first coefficients of each component: bits that the
	// scans leave out, -1 if that is all. checkEnd finds out.
	missing [4][guessed]int8
}

// parse reads markers up to the first scan.
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

// add takes in one segment. Tables are left to the decoders.
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

// restartInterval reads the segment of that name.
func restartInterval(seg []byte) (units int, err error) {
	if len(seg) != 2 {
		return 0, format.Corrupt(format.JPEG, "restart interval segment of %d bytes", len(seg))
	}
	return int(binary.BigEndian.Uint16(seg)), nil
}

// frame reads a frame header (T.81 B.2.2) and refuses what no back end decodes.
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

// startScan checks the frame of a scan header: the frame header must come first, as it says which components there are.
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

// model follows libjpeg's default_decompress_parms (jdapimin.c), which Pillow trusts.
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

func (h *header) config() format.Config {
	if h.n == 0 {
		return format.Config{}
	}
	return format.Config{Width: h.w, Height: h.h, Model: h.model(), Channels: h.n, Bits: h.bits,
		Orientation: h.orientation}
}

// guessed is how many coefficients, in zigzag order, may be guessed.
const guessed = 10

// noteScan takes in what the scan header seg says of the coefficients it brings.
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

// Config reads the header.
func Config(data []byte) (format.Config, error) {
	h, err := parse(data)
	return h.config(), err
}
