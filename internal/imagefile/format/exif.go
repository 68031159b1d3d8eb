package format

import (
	"bytes"
	"encoding/binary"
)

// Orientation returns the value of tag 0x0112 in the first directory of a TIFF structure, which
// both an EXIF block and a TIFF file are (TIFF 6.0 section 2). It returns 1, upright, if the tag is
// missing or makes no sense.
func Orientation(b []byte) int {
	const tagOrientation = 0x0112
	if v, ok := tiffInteger(b, tagOrientation); ok && v >= 1 && v <= 8 {
		return v
	}
	return 1
}

// tiffTypes has the sizes of the types, by number, that Pillow accepts for integers here: SHORT,
// LONG, SBYTE, SSHORT and SLONG. Orientations are positive, so signed numbers are read as unsigned
// ones.
var tiffTypes = [...]int{3: 2, 4: 4, 6: 1, 8: 2, 9: 4}

// tiffInteger returns the first value of a tag in the first directory, if the tag is there and an
// integer.
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

// integerAt returns the first value of a directory entry: type, count, and four bytes with the
// values or, if the values do not fit, with their offset.
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

// APP1Orientation is Orientation for the payload of a JPEG's APP1 segment; 0 if the segment has no
// EXIF.
func APP1Orientation(seg []byte) int {
	if tail, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00")); ok {
		return Orientation(tail)
	}
	return 0
}
