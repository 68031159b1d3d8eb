package tiff

import (
	"encoding/binary"
	"math"
)

// The tags that are read (TIFF 6.0 section 8, and tags of later notes).
const (
	tagSubfileType   = 254
	tagWidth         = 256
	tagHeight        = 257
	tagBits          = 258
	tagCompression   = 259
	tagPhotometric   = 262
	tagFillOrder     = 266
	tagStripOffsets  = 273
	tagOrientation   = 274
	tagSamples       = 277
	tagRowsPerStrip  = 278
	tagStripCounts   = 279
	tagPlanar        = 284
	tagT4Options     = 292
	tagPredictor     = 317
	tagColorMap      = 320
	tagTileWidth     = 322
	tagTileHeight    = 323
	tagTileOffsets   = 324
	tagTileCounts    = 325
	tagExtraSamples  = 338
	tagSampleFormat  = 339
	tagJPEGTables    = 347
	tagYCbCrCoeffs   = 529
	tagYCbCrSampling = 530
	tagReferenceBW   = 532
)

// typeSizes has the bytes of a value, by the number of its type; types 16 to 18 are BigTIFF's.
// Integers and RATIONAL are read; other values are skipped by their size.
var typeSizes = [...]int{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8,
	18: 8}

// file is the bytes of a file, its byte order, and whether it is a BigTIFF, which has 64-bit
// offsets and counts.
type file struct {
	data  []byte
	order binary.ByteOrder
	big   bool
}

// entry is the values of a tag: raw has count values of type typ, as bytes of the file.
type entry struct {
	typ   int
	count int
	raw   []byte
}

// directory has the entries of one page, by tag. Only known tags are kept.
type directory map[int]entry

// open reads the header, and returns the offset of the first directory. 42 means TIFF, 43 BigTIFF.
func open(data []byte) (f file, first uint64, err error) {
	if len(data) < 8 {
		return f, 0, malformed("truncated: the file ends in the header")
	}
	f = file{data: data, order: binary.LittleEndian}
	switch string(data[:2]) {
	case "II":
	case "MM":
		f.order = binary.BigEndian
	default:
		return f, 0, malformed("the header is not a TIFF header")
	}
	switch f.order.Uint16(data[2:]) {
	case 42:
		return f, uint64(f.order.Uint32(data[4:])), nil
	case 43:
		f.big = true
		if len(data) < 16 || f.order.Uint16(data[4:]) != 8 {
			return f, 0, malformed("truncated, or corrupt in its header")
		}
		return f, f.order.Uint64(data[8:]), nil
	}
	return f, 0, malformed("the header is not a TIFF header")
}

// at returns n bytes from an offset on, or nil if the file does not have them.
func (f *file) at(offset, n uint64) []byte {
	size := uint64(len(f.data))
	if offset > size || n > size-offset {
		return nil
	}
	return f.data[offset : offset+n]
}

// directory reads the directory at an offset, and returns the offset of the next directory, 0 after
// the last directory. The number of entries is checked against the size of the file before anything
// is allocated.
func (f *file) directory(offset uint64) (d directory, next uint64, err error) {
	head, size, tail := uint64(2), uint64(12), uint64(4)
	if f.big {
		head, size, tail = 8, 20, 8
	}
	b := f.at(offset, head)
	if b == nil {
		return nil, 0, malformed("truncated: the file ends before its directory at byte %d", offset)
	}
	n := uint64(f.order.Uint16(b))
	if f.big {
		n = f.order.Uint64(b)
	}
	entries := f.at(offset+head, min(n, uint64(len(f.data))/size+1)*size)
	if entries == nil || n == 0 {
		return nil, 0, malformed("truncated: the file ends in its directory of %d entries", n)
	}
	d = make(directory)
	for ; len(entries) > 0; entries = entries[size:] {
		tag := int(f.order.Uint16(entries))
		if !known(tag) {
			continue
		}
		e, err := f.entry(entries[2:size])
		if err != nil {
			return nil, 0, err
		}
		if e.count > 0 {
			d[tag] = e
		}
	}
	if b = f.at(offset+head+n*size, tail); b == nil {
		return d, 0, nil
	}
	if f.big {
		return d, f.order.Uint64(b), nil
	}
	return d, uint64(f.order.Uint32(b)), nil
}

// known reports whether a tag is read.
func known(tag int) bool {
	switch tag {
	case tagSubfileType, tagWidth, tagHeight, tagBits, tagCompression, tagPhotometric, tagFillOrder, tagStripOffsets,
		tagOrientation,
		tagSamples, tagRowsPerStrip, tagStripCounts, tagPlanar, tagT4Options, tagPredictor, tagColorMap, tagTileWidth,
		tagTileHeight,
		tagTileOffsets, tagTileCounts, tagExtraSamples, tagSampleFormat, tagJPEGTables, tagYCbCrCoeffs, tagYCbCrSampling,
		tagReferenceBW:
		return true
	}
	return false
}

// entry reads an entry of a directory: type, count, and the values or, if the values do not fit,
// their offset. An entry of an unknown type has no values.
func (f *file) entry(b []byte) (e entry, err error) {
	typ, count, value := int(f.order.Uint16(b)), uint64(f.order.Uint32(b[2:])), b[6:]
	if f.big {
		count, value = f.order.Uint64(b[2:]), b[10:]
	}
	if typ >= len(typeSizes) || typeSizes[typ] == 0 || count == 0 {
		return e, nil
	}
	if count > uint64(len(f.data)) {
		return e, malformed("truncated: an entry of the directory has %d values", count)
	}
	n := count * uint64(typeSizes[typ])
	if n > uint64(len(value)) {
		offset := uint64(f.order.Uint32(value))
		if f.big {
			offset = f.order.Uint64(value)
		}
		if value = f.at(offset, n); value == nil {
			return e, malformed("truncated: an entry of the directory has %d values beyond the end of the file", count)
		}
	}
	return entry{typ, int(count), value[:n]}, nil
}

// integer returns value i of an entry of integers, at most math.MaxInt.
func (f *file) integer(e entry, i int) int {
	var v uint64
	switch b := e.raw[i*typeSizes[e.typ]:]; typeSizes[e.typ] {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(f.order.Uint16(b))
	case 4:
		v = uint64(f.order.Uint32(b))
	case 8:
		v = f.order.Uint64(b)
	}
	return int(min(v, math.MaxInt))
}

// number returns value i of an entry of integers or rationals. Rationals are divided in float32.
func (f *file) number(e entry, i int) float64 {
	if e.typ != 5 {
		return float64(f.integer(e, i))
	}
	b := e.raw[8*i:]
	return float64(float32(f.order.Uint32(b)) / float32(f.order.Uint32(b[4:])))
}

// one returns the first value of a tag of integers, or a default.
func (f *file) one(d directory, tag, otherwise int) int {
	if e, ok := d[tag]; ok && e.typ != 5 && e.typ != 10 && e.typ != 11 && e.typ != 12 {
		return f.integer(e, 0)
	}
	return otherwise
}
