package decode

import (
	"bytes"
	"encoding/binary"
)

// exifOrientation reads tag 0x0112 of the first directory of a TIFF structure, which is
// what an EXIF block and a TIFF file both are (TIFF 6.0 section 2). It returns 1, upright,
// where there is no such tag or it makes no sense.
func exifOrientation(b []byte) int {
	const (
		tagOrientation = 0x0112
		typeShort      = 3
		entryLen       = 12
	)
	if len(b) < 8 {
		return 1
	}
	var bo binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		bo = binary.BigEndian
	}
	off := uint64(bo.Uint32(b[4:]))
	if off > uint64(len(b)-2) {
		return 1
	}
	entries := b[off+2:]
	for n := int(bo.Uint16(b[off:])); n > 0 && len(entries) >= entryLen; n-- {
		if bo.Uint16(entries) == tagOrientation && bo.Uint16(entries[2:]) == typeShort {
			if v := bo.Uint16(entries[8:]); v >= 1 && v <= 8 {
				return int(v)
			}
		}
		entries = entries[entryLen:]
	}
	return 1
}

// app1Orientation is exifOrientation for the payload of a JPEG APP1 segment, 0 if that
// holds no EXIF.
func app1Orientation(seg []byte) int {
	if tail, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00")); ok {
		return exifOrientation(tail)
	}
	return 0
}
