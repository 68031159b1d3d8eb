package meta

import (
	"fmt"
	"strings"
)

// Ids of filters that this package can name.
const (
	FilterDeflate     = 1
	FilterShuffle     = 2
	FilterFletcher32  = 3
	FilterSzip        = 4
	FilterNbit        = 5
	FilterScaleOffset = 6
	FilterBzip2       = 307
	FilterLZF         = 32000
	FilterBlosc       = 32001
	FilterLZ4         = 32004
	FilterBitshuffle  = 32008
	FilterZstd        = 32015
	FilterBlosc2      = 32026
)

var filterNames = map[uint16]string{
	FilterDeflate: "deflate", FilterShuffle: "shuffle", FilterFletcher32: "fletcher32", FilterSzip: "szip",
	FilterNbit: "nbit", FilterScaleOffset: "scaleoffset", FilterLZF: "lzf",
	FilterBzip2: "bzip2", FilterBlosc: "blosc", FilterLZ4: "lz4", FilterBitshuffle: "bitshuffle", FilterZstd: "zstd",
	FilterBlosc2: "blosc2",
	305:          "lzo", 32013: "zfp", 32017: "sz", 32018: "fcidecomp", 32024: "sz3", 32028: "sperr",
}

// Filter is one step that chunks go through when they are written; a reader undoes the
// steps last to first.
type Filter struct {
	ID       uint16
	Name     string   // registered name, or the one stored in the file
	Optional bool     // a chunk may have skipped it; see the filter mask of the chunk
	Params   []uint32 // for deflate the level, for shuffle the element size
}

// String returns name and parameters, for example "deflate(4)".
func (f Filter) String() string {
	if len(f.Params) == 0 {
		return f.Name
	}
	params := strings.Trim(fmt.Sprint(f.Params), "[]")
	return f.Name + "(" + strings.ReplaceAll(params, " ", ", ") + ")"
}

// maxFilters is the largest number of filters in a pipeline, as in libhdf5.
const maxFilters = 32

// parseFilters reads the filter pipeline message (IV.A.2.l): the filters in the order in which a writer applied them.
func parseFilters(c *cursor) []Filter {
	version := c.Version(1, 2)
	n := int(c.U8())
	if version == 1 {
		c.Skip(6)
	}
	if c.Err == nil && n > maxFilters {
		c.Corrupt("%d filters, at most %d are possible", n, maxFilters)
	}
	var list []Filter
	for i := 0; i < n && c.Err == nil; i++ {
		list = append(list, parseFilter(c, version))
	}
	return list
}

// parseFilter reads one filter of a pipeline. Version 2 has no name for filters below 256, which the HDF Group numbers,
// and no padding; version 1 pads an odd number of parameters by 4 bytes. A known filter gets its own name here, as a
// writer may store any.
func parseFilter(c *cursor, version uint8) Filter {
	f := Filter{ID: c.U16()}
	nameLen := uint16(0)
	if version == 1 || f.ID >= 256 {
		nameLen = c.U16()
	}
	f.Optional = c.U16()&1 != 0
	n := int(c.U16())
	f.Name = untilNUL(c.Bytes(uint64(nameLen)))
	for i := 0; i < n && c.Err == nil; i++ {
		f.Params = append(f.Params, c.U32())
	}
	if version == 1 && n%2 == 1 {
		c.Skip(4)
	}
	if name, ok := filterNames[f.ID]; ok {
		f.Name = name
	} else if f.Name == "" {
		f.Name = fmt.Sprintf("filter %d", f.ID)
	}
	return f
}
