package imagefile

import (
	"bytes"
	"encoding/binary"
	"image"

	"github.com/penstock/penstock/internal/pixel"
)

// exifOrientation reads tag 0x0112 of the first directory of a TIFF structure, which is
// what an EXIF block and a TIFF file both are (TIFF 6.0 section 2). It returns 1, upright,
// where there is no such tag or it makes no sense.
func exifOrientation(b []byte) int {
	const tagOrientation = 0x0112
	if v, ok := tiffInteger(b, tagOrientation); ok && v >= 1 && v <= 8 {
		return v
	}
	return 1
}

// tiffTypes has the bytes of the types that Pillow takes for numbers, and here are for numbers
// that are not negative: SHORT, LONG, and those with a sign.
var tiffTypes = [...]int{3: 2, 4: 4, 6: 1, 8: 2, 9: 4}

// tiffInteger returns the first value of a tag of the first directory, if it is there and an
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

// app1Orientation is exifOrientation for the payload of a JPEG APP1 segment, 0 if that
// holds no EXIF.
func app1Orientation(seg []byte) int {
	if tail, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00")); ok {
		return exifOrientation(tail)
	}
	return 0
}

// turn returns src as EXIF orientation o (2 to 8) wants it shown, as a raster of its own
// memory.
func (d *Decoder) turn(src pixel.Source, o int) (pixel.Source, error) {
	w, h, c := src.Size()
	step := 1
	if c == 3 {
		step = 4
	}
	ow, oh := w, h
	if o >= 5 {
		ow, oh = h, w
	}
	d.turned = pixel.Grow(d.turned, w*h*step)
	out := d.turned
	at := orientation(o, w, h, step)
	err := src.Scan(image.Rect(0, 0, w, h), func(y int, strip pixel.Image) error {
		for i := range strip.H {
			row := strip.Pix[i*strip.Stride:]
			start, next := at(y + i)
			for x := range w {
				copy(out[start+x*next:][:c], row[x*strip.Step:])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.set(out, ow, oh, step, ow*step), nil
}

// orientation returns where source row y of a w x h image goes: the offset of its first
// pixel in the turned image, and from there to the next one, in bytes.
func orientation(o, w, h, step int) func(y int) (start, next int) {
	return func(y int) (start, next int) {
		var px, dx int // in pixels
		switch o {
		case 2: // mirrored left to right
			px, dx = y*w+w-1, -1
		case 3: // turned by 180 degrees
			px, dx = (h-1-y)*w+w-1, -1
		case 4: // mirrored top to bottom
			px, dx = (h-1-y)*w, 1
		case 5: // transposed
			px, dx = y, h
		case 6: // to be turned clockwise
			px, dx = h-1-y, h
		case 7: // transposed along the other diagonal
			px, dx = (w-1)*h+h-1-y, -h
		case 8: // to be turned counter-clockwise
			px, dx = (w-1)*h+y, -h
		}
		return px * step, dx * step
	}
}
