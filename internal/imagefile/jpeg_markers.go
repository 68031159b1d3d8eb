package imagefile

import (
	"bytes"
	"encoding/binary"
)

// Markers of ITU-T T.81, table B.1.
const (
	mSOF0  = 0xC0 // baseline
	mSOF1  = 0xC1 // extended sequential
	mSOF2  = 0xC2 // progressive
	mDHT   = 0xC4
	mSOF9  = 0xC9 // extended sequential, arithmetic-coded
	mSOF10 = 0xCA // progressive, arithmetic-coded
	mJPG   = 0xC8
	mDAC   = 0xCC
	mSOF15 = 0xCF
	mRST0  = 0xD0
	mRST7  = 0xD7
	mSOI   = 0xD8
	mEOI   = 0xD9
	mSOS   = 0xDA
	mDQT   = 0xDB
	mDRI   = 0xDD
	mAPP0  = 0xE0
	mAPP1  = 0xE1
	mAPP14 = 0xEE
	mAPP15 = 0xEF
	mCOM   = 0xFE
	mTEM   = 0x01
)

// nextMarker finds the marker at or after pos, skipping other bytes and fill as libjpeg
// does, and returns its code and where its segment starts.
func nextMarker(data []byte, pos int) (m byte, next int, ok bool) {
	for pos < len(data) {
		i := bytes.IndexByte(data[pos:], 0xFF)
		if i < 0 {
			break
		}
		for pos += i + 1; pos < len(data) && data[pos] == 0xFF; pos++ {
		}
		if pos < len(data) && data[pos] != 0 {
			return data[pos], pos + 1, true
		}
	}
	return 0, 0, false
}

// isStandalone reports whether a marker has no segment (T.81 B.1.1.3).
func isStandalone(m byte) bool {
	return m >= mRST0 && m <= mEOI || m == mTEM
}

// isFrame reports whether a marker is that of a frame header.
func isFrame(m byte) bool {
	return m >= mSOF0 && m <= mSOF15 && m != mDHT && m != mJPG && m != mDAC
}

// isReserved reports whether libjpeg refuses a marker with a segment wherever it stands: those
// of extensions and of hierarchical files among them.
func isReserved(m byte) bool {
	switch {
	case m == mDHT, m == mDAC, m >= mSOS && m <= mDRI, m >= mAPP0 && m <= mAPP15, m == mCOM:
		return false
	}
	return !isFrame(m)
}

// segment returns the payload after a marker's length field at pos, and where it ends.
func segment(data []byte, m byte, pos int) (seg []byte, end int, err error) {
	if isReserved(m) {
		return nil, 0, corrupt(JPEG, "reserved marker ff%02x at byte %d", m, pos-2)
	}
	if len(data)-pos < 2 {
		return nil, 0, corrupt(JPEG, "truncated at byte %d: the file ends in marker ff%02x", len(data), m)
	}
	n := int(binary.BigEndian.Uint16(data[pos:]))
	if n < 2 {
		return nil, 0, corrupt(JPEG, "marker ff%02x at byte %d has length %d", m, pos-2, n)
	}
	if n > len(data)-pos {
		return nil, 0, corrupt(JPEG, "truncated at byte %d: the file ends in the segment of marker ff%02x", len(data), m)
	}
	return data[pos+2 : pos+n], pos + n, nil
}

// maxScans is more than any encoder makes: each may take as long as an image, and a few
// bytes are enough for one.
const maxScans = 200

// checkSize refuses a file that is too small for what its header says, before memory is
// taken for that: a block takes at least a bit for its first coefficient and, if the frame
// is sequential, one for its end.
func (h *jpegHeader) checkSize(bytes int) error {
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
		return corrupt(JPEG, "truncated, or corrupt in its header: %d bytes cannot hold %dx%d pixels", bytes, h.w, h.h)
	}
	return nil
}

// checkEnd walks the scans from the first on, and returns an error where the file ends
// before its end-of-image marker. Bytes behind that marker are ignored.
func (h *jpegHeader) checkEnd(data []byte) error {
	pos, scan := h.scan, 0
	for i := range h.missing {
		for k := range h.missing[i] {
			h.missing[i][k] = -1
		}
	}
	for {
		m, next, ok := nextMarker(data, pos)
		switch {
		case !ok && scan > 0:
			return corrupt(JPEG, "truncated at byte %d of scan %d: the file ends before the image does", len(data), scan)
		case !ok:
			return corrupt(JPEG, "truncated at byte %d: the file ends before the image does", len(data))
		case m == mEOI:
			return nil
		case m == mSOI:
			return corrupt(JPEG, "a second image starts at byte %d, before the first has ended", next-2)
		case isStandalone(m):
			pos = next
			continue
		}
		seg, end, err := segment(data, m, next)
		if err != nil {
			return err
		}
		if isFrame(m) {
			return corrupt(JPEG, "two frame headers, the second at byte %d", next-2)
		}
		if pos = end; m == mSOS {
			if scan++; scan > maxScans {
				return corrupt(JPEG, "more than %d scans", maxScans)
			}
			h.noteScan(seg)
			pos = skipEntropy(data, end)
		}
	}
}

// skipEntropy returns where the entropy-coded data at pos ends: at a marker that is no
// restart marker, or at the end of the file.
func skipEntropy(data []byte, pos int) int {
	for {
		i := bytes.IndexByte(data[pos:], 0xFF)
		if i < 0 || pos+i+1 >= len(data) {
			return len(data)
		}
		pos += i
		switch m := data[pos+1]; {
		case m == 0 || m >= mRST0 && m <= mRST7:
			pos += 2
		case m == 0xFF:
			pos++
		default:
			return pos
		}
	}
}

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
