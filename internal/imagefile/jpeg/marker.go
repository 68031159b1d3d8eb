package jpeg

import (
	"bytes"
	"encoding/binary"

	"github.com/penstock/penstock/internal/imagefile/format"
)

// Markers of ITU-T T.81, table B.1.
const (
	SOF0  = 0xC0 // baseline
	SOF1  = 0xC1 // extended sequential
	SOF2  = 0xC2 // progressive
	DHT   = 0xC4
	SOF9  = 0xC9 // extended sequential, arithmetic-coded
	SOF10 = 0xCA // progressive, arithmetic-coded
	JPG   = 0xC8
	DAC   = 0xCC
	SOF15 = 0xCF
	RST0  = 0xD0
	RST7  = 0xD7
	SOI   = 0xD8
	EOI   = 0xD9
	SOS   = 0xDA
	DQT   = 0xDB
	DRI   = 0xDD
	APP0  = 0xE0
	APP1  = 0xE1
	APP14 = 0xEE
	APP15 = 0xEF
	COM   = 0xFE
	TEM   = 0x01
)

// NextSegment finds the marker at or after pos, and skips other bytes and fill bytes FF as libjpeg
// does. It returns the marker's second byte and the position after it, where a segment has its
// length. ok is false if there is no further marker.
func NextSegment(data []byte, pos int) (m byte, next int, ok bool) {
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

// IsStandalone reports whether a marker has no segment (T.81 B.1.1.3).
func IsStandalone(m byte) bool {
	return m >= RST0 && m <= EOI || m == TEM
}

// IsFrame reports whether a marker begins a frame header (SOFn, ITU T.81, table B.1).
func IsFrame(m byte) bool {
	return m >= SOF0 && m <= SOF15 && m != DHT && m != JPG && m != DAC
}

// isReserved reports whether m, which is not standalone, is a marker that libjpeg refuses at any
// place, such as the markers of extensions and of hierarchical files.
func isReserved(m byte) bool {
	switch {
	case m == DHT, m == DAC, m >= SOS && m <= DRI, m >= APP0 && m <= APP15, m == COM:
		return false
	}
	return !IsFrame(m)
}

// Segment returns the payload of the segment of marker m, whose two length bytes lie at pos, and
// the position after it. The payload is part of data.
func Segment(data []byte, m byte, pos int) (seg []byte, end int, err error) {
	if isReserved(m) {
		return nil, 0, format.Corrupt(format.JPEG, "reserved marker ff%02x at byte %d", m, pos-2)
	}
	if len(data)-pos < 2 {
		return nil, 0, format.Corrupt(format.JPEG, "truncated at byte %d: the file ends in marker ff%02x", len(data), m)
	}
	n := int(binary.BigEndian.Uint16(data[pos:]))
	if n < 2 {
		return nil, 0, format.Corrupt(format.JPEG, "marker ff%02x at byte %d has length %d", m, pos-2, n)
	}
	if n > len(data)-pos {
		return nil, 0, format.Corrupt(format.JPEG, "truncated at byte %d: the file ends in the segment of marker ff%02x",
			len(data), m)
	}
	return data[pos+2 : pos+n], pos + n, nil
}

// SkipEntropy returns where the entropy-coded data at pos ends: at a marker that is no
// restart marker, or at the end of the file.
func SkipEntropy(data []byte, pos int) int {
	for {
		i := bytes.IndexByte(data[pos:], 0xFF)
		if i < 0 || pos+i+1 >= len(data) {
			return len(data)
		}
		pos += i
		switch m := data[pos+1]; {
		case m == 0 || m >= RST0 && m <= RST7:
			pos += 2
		case m == 0xFF:
			pos++
		default:
			return pos
		}
	}
}
