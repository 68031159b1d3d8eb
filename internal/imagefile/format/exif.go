package format

import (
	"bytes"
	"encoding/binary"
)

// Orientation reads tag 0x0112 of the first directory of a TIFF structure, which is
// what an EXIF block and a TIFF file both are (TIFF 6.0 section 2). It returns 1, upright,
// where there is no such tag or it makes no sense.
func Orientation(b []byte) int {
	const tagOrientation = 0x0112
	if v, ok := tiffInteger(b, tagOrientation); ok && v >= 1 && v <= 8 {
		return v
	}
	return 1
}

// tiffTypes has the bytes of the types that Pillow takes for numbers, and here are for numbers
// that are not negative: SHORT, LONG, and those with a sign.
var tiffTypes = [...]int{3: 2, 4: 4, 6: 1, 8: 2, 9: 4}

// tiffInteger returns the first value of a tag of the first directory, if it is present and an integer.
func tiffInteger(b []byte, tag uint16) (value int, ok bool) {
	const entryLen = 12
	if len(b) < 8 {
		return 0, false
	}
	var bo binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		bo = binary.BigEndian
	}
	off := uint64(bo.Uint32(b[4:]))
	if off > uint64(len(b)-2) {
		return 0, false
	}
	entries := b[off+2:]
	for n := int(bo.Uint16(b[off:])); n > 0 && len(entries) >= entryLen; n-- {
		if bo.Uint16(entries) == tag {
			return integerAt(b, entries[2:entryLen], bo)
		}
		entries = entries[entryLen:]
	}
	return 0, false
}

// integerAt reads type, count and the first value of an entry, which lies elsewhere where all
// do not fit.
func integerAt(b, entry []byte, bo binary.ByteOrder) (value int, ok bool) {
	typ, count, at := int(bo.Uint16(entry)), uint64(bo.Uint32(entry[2:])), entry[6:]
	if typ >= len(tiffTypes) || tiffTypes[typ] == 0 || count == 0 {
		return 0, false
	}
	size := tiffTypes[typ]
	if uint64(size)*count > uint64(len(at)) {
		off := uint64(bo.Uint32(at))
		if off+uint64(size) > uint64(len(b)) {
			return 0, false
		}
		at = b[off:]
	}
	switch size {
	case 1:
		return int(at[0]), true
	case 2:
		return int(bo.Uint16(at)), true
	}
	return int(bo.Uint32(at)), true
}

// APP1Orientation is exifOrientation for the payload of a JPEG APP1 segment, 0 if that
// holds no EXIF.
func APP1Orientation(seg []byte) int {
	if tail, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00")); ok {
		return Orientation(tail)
	}
	return 0
}
