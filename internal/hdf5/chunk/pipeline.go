package chunk

import (
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// pipeline lists the filters that the chunks of a dataset went through when they were written.
type pipeline struct {
	steps []step // in the order of writing; bit i of a chunk's mask belongs to steps[i]
	size  int    // bytes of a chunk before the first step
	most  int    // the most bytes that one stored byte can stand for

	bits     bool // the first step is scaleoffset or nbit, whose stored size is not fixed
	constant bool // a step can store one number many times
}

// step is one filter of a pipeline.
type step struct {
	id   uint16
	name string
	elem int // shuffle: bytes of an element

	scaled scaleOffset
	codec  Codec // of szip, nbit and the filters of plugins
	open   bool  // deflate: its output has any size, as the step before it has
}

// The most bytes that one stored byte can become: in a deflate stream 258 bytes take two bits, in LZF 264 bytes take
// three bytes.
const (
	mostInflated = 1032
	mostLZF      = 88
)

// mostConstant limits a chunk whose size its stored bytes do not limit: scaleoffset and blosc2 store one number many
// times in no bits. A file of a few bytes could otherwise claim any amount of memory.
const mostConstant = 64 << 20

// newPipeline returns the filters of a dataset, and refuses filters and orders of filters that are not undone here.
func newPipeline(filters []meta.Filter, elem int64, size int) (pipeline, error) {
	p := pipeline{size: size, most: 1}
	compressors := 0
	for i, f := range filters {
		s, expansion, err := p.step(f, elem)
		if err != nil {
			return p, err
		}
		if expansion > 1 {
			p.most = max(p.most, expansion)
			compressors++
		}
		if s.scaled.size > 0 || f.ID == meta.FilterNbit {
			if i > 0 {
				return p, fmt.Errorf("filter %v after others cannot be decoded here: %w", f, meta.ErrUnsupported)
			}
			p.bits = true
			compressors = 0
		}
		p.constant = p.constant || f.ID == meta.FilterBlosc2
		if p.bits && f.ID == meta.FilterLZF {
			return p, fmt.Errorf("lzf after %s cannot be decoded here: %w", filters[0].Name, meta.ErrUnsupported)
		}
		p.steps = append(p.steps, s)
	}
	if compressors > 1 {
		return p, fmt.Errorf("chunks that were compressed twice are not read here: %w", meta.ErrUnsupported)
	}
	return p, nil
}

// step returns the step of a filter, and how many bytes one stored byte can stand for.
func (p *pipeline) step(f meta.Filter, elem int64) (s step, expansion int, err error) {
	s = step{id: f.ID, name: f.Name}
	switch f.ID {
	case meta.FilterDeflate:
		s.open = p.bits
		return s, mostInflated, nil
	case meta.FilterLZF:
		return s, mostLZF, nil
	case meta.FilterFletcher32:
		return s, 1, nil
	case meta.FilterShuffle:
		s.elem = int(elem)
		if len(f.Params) > 0 && f.Params[0] > 0 && f.Params[0] <= math.MaxInt32 {
			s.elem = int(f.Params[0])
		}
		return s, 1, nil
	case meta.FilterScaleOffset:
		s.scaled, err = newScaleOffset(f.Params, p.size)
		return s, 1, err
	}
	if s.codec, err = New(f, p.size); err != nil {
		return s, 1, err
	}
	return s, s.codec.Expansion(), nil
}

// plain reports whether a chunk with that mask went through no filter.
func (p *pipeline) plain(mask uint32) bool {
	for i := range p.steps {
		if p.applied(i, mask) {
			return false
		}
	}
	return true
}

// applied reports whether step i has changed a chunk with that mask.
func (p *pipeline) applied(i int, mask uint32) bool {
	return mask>>i&1 == 0 && (p.steps[i].id != meta.FilterShuffle || p.steps[i].elem > 1)
}

// sizeBefore returns how many bytes went into step i when the chunk was written: the chunk, and what earlier steps have
// added to it.
func (p *pipeline) sizeBefore(i int, mask uint32) int {
	n := p.size
	if p.bits && i > 0 {
		n += scaleOffsetHead + 2 // or less
	}
	for j := range i {
		if p.steps[j].id == meta.FilterFletcher32 && p.applied(j, mask) {
			n += 4
		}
	}
	return n
}

// possible reports whether a chunk can be stored in n bytes. It is asked before memory for the chunk is allocated.
func (p *pipeline) possible(n int64) bool {
	if p.bits {
		return int64(p.size) <= max(mostConstant, int64(max(p.most, mostInflated))*(n+64))
	}
	if p.constant {
		return int64(p.size) <= max(mostConstant, int64(p.most)*(n+64))
	}
	return int64(p.size)/int64(p.most) <= n+64
}

// undone is the error of a step, with the name of its filter.
type undone struct {
	filter string
	err    error
}

func (e *undone) Error() string { return e.filter + ": " + e.err.Error() }

func (e *undone) Unwrap() error { return e.err }

// undo decodes stored bytes into dst, which has the size of a chunk.
func (w *worker) undo(p *pipeline, dst, src []byte, mask uint32) error {
	left := 0 // steps that still need memory to write to
	for i, s := range p.steps {
		if p.applied(i, mask) && s.id != meta.FilterFletcher32 {
			left++
		}
	}
	for i := len(p.steps) - 1; i >= 0; i-- {
		if !p.applied(i, mask) {
			continue
		}
		var out []byte
		if s := p.steps[i]; s.id != meta.FilterFletcher32 {
			left--
			out = w.room(p, i, left, mask, dst, src)
		}
		var err error
		if src, err = w.undoStep(p.steps[i], out, src); err != nil {
			return &undone{p.steps[i].name, err}
		}
	}
	if len(src) != p.size {
		return fmt.Errorf("%d bytes after all filters, the chunk has %d: %w", len(src), p.size, meta.ErrCorrupt)
	}
	if w.wroteTo(dst, src) {
		return nil
	}
	copy(dst, src)
	return nil
}

func (w *worker) wroteTo(dst, src []byte) bool { return len(src) == 0 || &dst[0] == &src[0] }

// room returns the memory that step i writes to: dst for the last step, so that nothing is copied, and otherwise spare
// memory.
func (w *worker) room(p *pipeline, i, left int, mask uint32, dst, src []byte) []byte {
	n := len(src)
	if p.steps[i].id != meta.FilterShuffle {
		n = p.sizeBefore(i, mask)
	}
	if left == 0 && n == len(dst) {
		return dst
	}
	b := &w.spare[left&1]
	*b = grow(*b, n)
	return *b
}

// undoStep undoes one filter. A filter that moves bytes writes into out.
func (w *worker) undoStep(s step, out, src []byte) ([]byte, error) {
	switch s.id {
	case meta.FilterFletcher32:
		return checkFletcher32(src)
	case meta.FilterShuffle:
		filter.Unshuffle(out, src, s.elem)
		return out, nil
	case meta.FilterLZF:
		return out, unLZF(out, src)
	case meta.FilterScaleOffset:
		return out, s.scaled.undo(out, src)
	}
	if s.codec != nil {
		return s.codec.Decode(out, src)
	}
	if s.open {
		return inflateSome(out, src)
	}
	return out, corrupted(w.inflater.Inflate(out, src))
}

// grow returns b with length n, in new memory if b is too small.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
