package zarr

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/codec/blosc"
	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/codec/stream"
)

// nativeBytes is the codec of version 2, where the data type has the order of bytes.
const nativeBytes = "native"

// pipeline has the codecs that chunks went through when they were written: their elements were transposed and turned
// into bytes, and the bytes went through the steps.
type pipeline struct {
	size  int   // bytes of a chunk before the first step
	elem  int   // bytes of an element
	swap  int   // bytes of a number that is big endian, else 0
	order []int // of the axes of the stored chunk; nil where they are as they should be
	shape []int64
	steps []step
	most  int // bytes that one stored byte can stand for
}

// step is a codec from bytes to bytes.
type step struct {
	name  string
	extra int // bytes that it adds to those that it is given; 0 for a compressor
	most  int // bytes that one stored byte can stand for; 0 where none is taken away

	// decode undoes the step: it fills dst.
	decode func(dst, src []byte) error
	// size returns how many bytes a compressor was given; nil where src does not say so.
	size func(src []byte) (int, error)
}

// The most bytes that one stored byte can stand for: in a stream of deflate 258 bytes take two bits, in LZ4 255 bytes
// take a byte, in zstd 128 KiB take a block of four bytes; in blosc the number of its compression, doubled for its
// blocks. bzip2 has 45,899,235 zeros in 45 bytes.
const (
	mostDeflate = 1032
	mostLZ4     = 255
	mostZstd    = 32 << 10
	mostBzip2   = 1 << 20
)

// newPipeline returns the pipeline of the codecs in an array's metadata. An unknown codec is an error, as values would
// be wrong without it.
func newPipeline(codecs []codec, n number, chunk []int64) (pipeline, error) {
	p := pipeline{elem: n.bytes(), shape: chunk, size: n.bytes(), most: 1}
	for _, x := range chunk {
		p.size *= int(x)
	}
	arrays, vlen := true, false
	for _, c := range codecs {
		var err error
		switch {
		case arrays && c.Name == "transpose":
			err = p.transpose(c.Config)
		case n.isText() && strings.TrimPrefix(c.Name, "numcodecs.") == vlenTexts && len(p.steps) == 0:
			arrays, vlen = false, true
		case arrays && (c.Name == "bytes" || c.Name == "endian" || c.Name == nativeBytes):
			arrays = false
			err = p.bytes(c, n)
		case arrays:
			err = unsupported("codec %q", c.Name)
		default:
			err = p.add(c)
		}
		if err != nil {
			return p, err
		}
	}
	if arrays {
		return p, corrupt("no codec turns the chunks into bytes")
	}
	if n.isText() != vlen {
		return p, unsupported("objects that no codec %s turns into bytes", vlenTexts)
	}
	return p, nil
}

// transpose reads the order of axes in which a chunk is stored. Drafts of version 3 had the letters C and F, which
// files in use still have.
func (p *pipeline) transpose(conf json.RawMessage) error {
	var c struct {
		Order any `json:"order"`
	}
	if err := json.Unmarshal(conf, &c); err != nil {
		return corrupt("codec transpose: %v", err)
	}
	axes := make([]int, len(p.shape))
	switch order := c.Order.(type) {
	case string: // of early drafts
		for i := range axes {
			axes[i] = i
		}
		if order == "F" {
			slices.Reverse(axes)
		} else if order != "C" {
			return corrupt("codec transpose: order %q", order)
		}
	case []any:
		if len(order) != len(axes) {
			return corrupt("codec transpose: order %v of %d axes", order, len(axes))
		}
		for i, x := range order {
			f, _ := x.(float64)
			axes[i] = int(f)
		}
	default:
		return corrupt("codec transpose: no order")
	}
	sorted := slices.Sorted(slices.Values(axes))
	for i, x := range sorted {
		if x != i {
			return corrupt("codec transpose: order %v", axes)
		}
	}
	if p.order != nil { // one after the other
		for i, x := range axes {
			axes[i] = p.order[x]
		}
	}
	if p.order = axes; slices.IsSorted(axes) {
		p.order = nil
	}
	return nil
}

// bytes reads the configuration of the codec that turns elements into bytes.
func (p *pipeline) bytes(c codec, n number) error {
	var conf struct {
		Endian string `json:"endian"`
	}
	if len(c.Config) > 0 {
		if err := json.Unmarshal(c.Config, &conf); err != nil {
			return corrupt("codec %s: %v", c.Name, err)
		}
	}
	big := n.big
	if c.Name != nativeBytes {
		big = conf.Endian == "big"
	}
	if size := n.dtype.Size(); big && size > 1 {
		p.swap = size
	}
	return nil
}

// add adds a step.
func (p *pipeline) add(c codec) error {
	name := strings.TrimPrefix(c.Name, "numcodecs.")
	var conf struct {
		ElementSize int    `json:"elementsize"`
		Location    string `json:"location"`
	}
	if len(c.Config) > 0 {
		if err := json.Unmarshal(c.Config, &conf); err != nil {
			return corrupt("codec %s: %v", name, err)
		}
	}
	s := step{name: name}
	switch name {
	case "gzip":
		s.most, s.decode, s.size = mostDeflate, stream.Gzip, wordAtEnd
	case "zlib":
		s.most, s.decode = mostDeflate, stream.Zlib
	case "zstd":
		s.most, s.decode, s.size = mostZstd, stream.Zstd, stream.ZstdSize
	case "bz2":
		s.most, s.decode = mostBzip2, stream.Bzip2
	case "lz4":
		s.most, s.decode, s.size = mostLZ4, sizedLZ4, wordAtStart
	case "blosc":
		s.most, s.decode, s.size = mostZstd, blosc.Decode, blosc.Size
	case "shuffle":
		size := max(1, conf.ElementSize)
		s.decode = func(dst, src []byte) error { return unshuffle(dst, src, size) }
	case "crc32c", "crc32", "adler32":
		return p.addChecksum(name, conf.Location)
	default:
		return unsupported("codec %q", c.Name)
	}
	if s.most > 0 {
		if p.most > 1 {
			return unsupported("chunks that were compressed twice, the second time by %s", name)
		}
		p.most = s.most
	}
	p.steps = append(p.steps, s)
	return nil
}

// addChecksum adds a checksum, which has 4 bytes.
func (p *pipeline) addChecksum(name, location string) error {
	sum := map[string]func([]byte) uint32{
		"crc32c": func(b []byte) uint32 {
			return crc32.Checksum(b, castagnoli)
		}, "crc32": crc32.ChecksumIEEE, "adler32": filter.Adler32,
	}[name]
	atStart := location == "start" || location == "" && name != "crc32c" // as numcodecs has it
	p.steps = append(p.steps, step{name: name, extra: 4, decode: func(dst, src []byte) error {
		if len(src) != len(dst)+4 {
			return corrupt("%d bytes with their checksum, not %d", len(src), len(dst)+4)
		}
		stored, data := src[len(dst):], src[:len(dst)]
		if atStart {
			stored, data = src[:4], src[4:]
		}
		if got, want := sum(data), binary.LittleEndian.Uint32(stored); got != want {
			return corrupt("the checksum is %08x, was %08x when it was written", got, want)
		}
		copy(dst, data)
		return nil
	}})
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sizedLZ4 decodes a size and a block of LZ4, as numcodecs stores it.
func sizedLZ4(dst, src []byte) error {
	if len(src) < 4 || int(binary.LittleEndian.Uint32(src)) != len(dst) {
		return corrupt("not a block of %d bytes", len(dst))
	}
	return stream.LZ4(dst, src[4:])
}

func unshuffle(dst, src []byte, size int) error {
	if len(src) != len(dst) {
		return corrupt("%d bytes, not %d", len(src), len(dst))
	}
	filter.Unshuffle(dst, src, size)
	return nil
}

// possible reports whether n stored bytes can be a chunk. It is asked before memory is taken for the chunk: a small
// hostile file can claim huge chunks.
func (p *pipeline) possible(n int) bool { return p.size/p.most <= n+64 }

// sizeBefore returns how many bytes went into step i, and -1 if a compressor before that step does not tell.
func (p *pipeline) sizeBefore(i int) int {
	n := p.size
	for _, s := range p.steps[:i] {
		if s.most > 0 {
			return -1
		}
		n += s.extra
	}
	return n
}

// decode makes a chunk of stored bytes. The results of steps are kept in the memory of spare.
func (p *pipeline) decode(dst, src []byte, spare *[2][]byte) error {
	for i := len(p.steps) - 1; i >= 0; i-- {
		s, n := &p.steps[i], p.sizeBefore(i)
		if n < 0 { // a compressor came before, and nothing here changes the size but a checksum
			n = len(src) - s.extra
		}
		if n < 0 {
			return corrupt("%s: %d bytes", s.name, len(src))
		}
		out := dst
		if i > 0 || p.order != nil || n != len(dst) {
			b := &spare[i&1]
			if cap(*b) < n {
				*b = make([]byte, n)
			}
			out = (*b)[:n]
		}
		if err := s.decode(out, src); err != nil {
			return corrupt("%s: %v", s.name, err)
		}
		src = out
	}
	if len(src) != len(dst) {
		return corrupt("%d bytes, the chunk has %d", len(src), len(dst))
	}
	if p.order != nil {
		p.untranspose(dst, src)
	} else if len(dst) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
	if p.swap > 0 {
		filter.SwapBytes(dst, p.swap)
	}
	return nil
}

// untranspose puts the elements of a chunk into C order. Axis i of the stored chunk is axis order[i] of the chunk.
func (p *pipeline) untranspose(dst, src []byte) {
	axes := len(p.shape)
	strides := make([]int, axes) // of the chunk, in bytes
	for i, n := axes-1, p.elem; i >= 0; i-- {
		strides[i] = n
		n *= int(p.shape[i])
	}
	steps, counts := make([]int, axes), make([]int, axes) // by axis of what is stored
	for i, x := range p.order {
		steps[i], counts[i] = strides[x], int(p.shape[x])
	}
	at := make([]int, axes)
	inner, step := counts[axes-1], steps[axes-1]
	for to := 0; len(src) > 0; {
		scatter(dst[to:], src[:inner*p.elem], p.elem, step)
		src = src[inner*p.elem:]
		for i := axes - 2; i >= 0; i-- {
			at[i]++
			to += steps[i]
			if at[i] < counts[i] {
				break
			}
			to -= counts[i] * steps[i]
			at[i] = 0
		}
	}
}

// scatter puts elements to places that are step bytes apart.
func scatter(dst, src []byte, size, step int) {
	switch size {
	case 1:
		for i, x := range src {
			dst[i*step] = x
		}
	case 2:
		for i := 0; i < len(src); i += 2 {
			*(*[2]byte)(dst[i/2*step:]) = [2]byte(src[i:])
		}
	case 4:
		for i := 0; i < len(src); i += 4 {
			*(*[4]byte)(dst[i/4*step:]) = [4]byte(src[i:])
		}
	case 8:
		for i := 0; i < len(src); i += 8 {
			*(*[8]byte)(dst[i/8*step:]) = [8]byte(src[i:])
		}
	default:
		for i := 0; i < len(src); i += size {
			copy(dst[i/size*step:], src[i:i+size])
		}
	}
}
