package imagefile

import (
	"bytes"
	"encoding/binary"
)

// jpegComponent is one entry of a frame header.
type jpegComponent struct {
	id, h, v byte
	tq       byte
}

// jpegHeader is what stands before the first scan.
type jpegHeader struct {
	w, h        int
	bits        int
	sof         byte // the frame's marker
	n           int  // components
	comp        [4]jpegComponent
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

// parseJPEG reads markers up to the first scan.
func parseJPEG(data []byte) (jpegHeader, error) {
	var h jpegHeader
	pos := 2 // after SOI, which Sniff saw
	for {
		m, next, ok := nextMarker(data, pos)
		if !ok {
			return h, corrupt(JPEG, "truncated at byte %d: the file ends before the first scan", len(data))
		}
		if isStandalone(m) {
			switch m {
			case mEOI:
				return h, corrupt(JPEG, "holds no image: end-of-image marker at byte %d, before any scan", next-2)
			case mSOI:
				return h, corrupt(JPEG, "a second image starts at byte %d, before the first has", next-2)
			}
			pos = next
			continue
		}
		seg, end, err := segment(data, m, next)
		if err != nil {
			return h, err
		}
		if m == mSOS {
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
func (h *jpegHeader) add(m byte, seg []byte) error {
	switch {
	case m == mDRI:
		n, err := restartInterval(seg)
		h.restart = n
		return err
	case m == mAPP0:
		h.jfif = h.jfif || len(seg) >= 14 && bytes.HasPrefix(seg, []byte("JFIF\x00"))
	case m == mAPP1 && h.orientation == 0:
		h.orientation = app1Orientation(seg)
	case m == mAPP14 && len(seg) >= 12 && bytes.HasPrefix(seg, []byte("Adobe")):
		h.adobe, h.transform = true, seg[11]
	case isFrame(m):
		return h.frame(m, seg)
	}
	return nil
}

// restartInterval reads the segment of that name.
func restartInterval(seg []byte) (units int, err error) {
	if len(seg) != 2 {
		return 0, corrupt(JPEG, "restart interval segment of %d bytes", len(seg))
	}
	return int(binary.BigEndian.Uint16(seg)), nil
}

// frame reads a frame header (T.81 B.2.2) and refuses what no back end decodes.
func (h *jpegHeader) frame(m byte, seg []byte) error {
	if h.sof != 0 {
		return corrupt(JPEG, "two frame headers")
	}
	if len(seg) < 6 {
		return corrupt(JPEG, "frame header of %d bytes is too short", len(seg))
	}
	h.sof, h.bits, h.n = m, int(seg[0]), int(seg[5])
	h.h, h.w = int(binary.BigEndian.Uint16(seg[1:])), int(binary.BigEndian.Uint16(seg[3:]))
	switch {
	case m == mSOF9 || m == mSOF10:
		return unsupported(JPEG, "arithmetic-coded frames are not supported (marker ff%02x); recode it without loss: jpegtran -copy all -optimize IN.jpg > OUT.jpg", m)
	case m > mSOF2:
		return unsupported(JPEG, "lossless and hierarchical frames are not supported (marker ff%02x); convert it to PNG", m)
	case h.bits != 8:
		return unsupported(JPEG, "%d-bit samples are not supported; convert it to PNG, or to a JPEG of 8 bits", h.bits)
	case h.n != 1 && h.n != 3 && h.n != 4:
		return unsupported(JPEG, "%d components are not supported; convert it to one of 1, 3 or 4", h.n)
	case len(seg) != 6+3*h.n:
		return corrupt(JPEG, "frame header of %d bytes for %d components", len(seg), h.n)
	}
	for i := range h.n {
		c := seg[6+3*i:]
		h.comp[i] = jpegComponent{id: c[0], h: c[1] >> 4, v: c[1] & 15, tq: c[2]}
		if k := h.comp[i]; k.h == 0 || k.h > 4 || k.v == 0 || k.v > 4 || k.tq > 3 {
			return corrupt(JPEG, "component %d has sampling factors %dx%d and quantisation table %d", i, k.h, k.v, k.tq)
		}
	}
	return nil
}

func (h *jpegHeader) startScan(seg []byte) error {
	if h.sof == 0 {
		return corrupt(JPEG, "a scan at byte %d, before the frame header", h.scan)
	}
	if len(seg) < 1 || seg[0] < 1 || int(seg[0]) > h.n || len(seg) != 4+2*int(seg[0]) {
		return corrupt(JPEG, "scan header at byte %d is malformed", h.scan)
	}
	h.scanComps = int(seg[0])
	return nil
}

// progressive reports whether the coefficients of a block may come in more than one scan.
func (h *jpegHeader) progressive() bool { return h.sof == mSOF2 }

// severalScans reports whether the coefficients of a block, or the components, may come in
// more than one scan, so that all must be read before pixels are made.
func (h *jpegHeader) severalScans() bool { return h.progressive() || h.scanComps != h.n }

// model follows libjpeg's default_decompress_parms (jdapimin.c), which Pillow trusts.
func (h *jpegHeader) model() string {
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

func (h *jpegHeader) config() Config {
	if h.n == 0 {
		return Config{}
	}
	return Config{Width: h.w, Height: h.h, Model: h.model(), Channels: h.n, Bits: h.bits, Orientation: h.orientation}
}
