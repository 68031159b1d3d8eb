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
