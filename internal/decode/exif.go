package decode

import (
	"bytes"
	"encoding/binary"
)

// exifOrientation reads tag 0x0112 of the first directory of a TIFF structure, which is
// what an EXIF block and a TIFF file both are (TIFF 6.0 section 2). It returns 1, upright,
// where there is no such tag or it makes no sense.
func exifOrientation(b []byte) int {
	const tagOrientation = 0x0112
	if v, ok := tiffShort(b, tagOrientation); ok && v >= 1 && v <= 8 {
		return v
	}
	return 1
}

// tiffShort returns the first value of a tag of the first directory, if it is there and two
// bytes each.
func tiffShort(b []byte, tag uint16) (value int, ok bool) {
	const (
		typeShort = 3
		entryLen  = 12
	)
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
		if bo.Uint16(entries) == tag && bo.Uint16(entries[2:]) == typeShort {
			return shortAt(b, entries[4:entryLen], bo)
		}
		entries = entries[entryLen:]
	}
	return 0, false
}

// shortAt reads the count of an entry and the first of its values, which lies elsewhere
// where there are more than two.
func shortAt(b, entry []byte, bo binary.ByteOrder) (value int, ok bool) {
	count, value4 := bo.Uint32(entry), entry[4:]
	if count > 2 {
		at := uint64(bo.Uint32(value4))
		if at+2 > uint64(len(b)) {
			return 0, false
		}
		value4 = b[at:]
	}
	return int(bo.Uint16(value4)), count > 0
}

// app1Orientation is exifOrientation for the payload of a JPEG APP1 segment, 0 if that
// holds no EXIF.
func app1Orientation(seg []byte) int {
	if tail, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00")); ok {
		return exifOrientation(tail)
	}
	return 0
}
