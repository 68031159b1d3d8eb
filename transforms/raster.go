package transforms

import (
	"errors"
	"fmt"
	"image"
	"math"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// RasterOutput returns the output of [Pipeline.Raster] for m; Pix does not matter. The transforms
// that work on a Raster are resizes, crops, layouts, and ConvertDType to float32 with Normalize.
// Any other transform is an error that names the possible transforms.
func (p *Pipeline) RasterOutput(m Raster) (Info, error) {
	var plan Plan
	return p.planRaster(&plan, m)
}

// planRaster plans the work for an image of any number of channels. It plans for one channel, or
// for three, because Normalize may have three means; the passes themselves treat all channels
// alike.
func (p *Pipeline) planRaster(plan *Plan, m Raster) (out Info, err error) {
	in := Info{W: m.W, H: m.H, C: 1}
	if m.C == 3 {
		in.C = 3
	}
	if err := p.build(plan, in, Rand{}); err != nil {
		return out, err
	}
	for i := range plan.passes {
		s := &plan.passes[i]
		switch {
		case s.pre != colorMode{} || s.post != colorMode{} || s.ops[0] != s.ops[1] || s.flipH || s.flipV ||
			plan.matrix != nil || len(plan.erased) > 0 || p.random:
			return out, fmt.Errorf("an image of %v with %d channels can be resized, cropped, converted to float32 and "+
				"normalized, and no more", m.DType, m.C)
		case s.padded:
			return out, fmt.Errorf("an image of %v with %d channels is smaller than its crop; no border is added to such images",
				m.DType, m.C)
		}
	}
	out = plan.info
	out.C = m.C
	switch {
	case plan.store.dtype == tensor.Uint8:
		out.DType = m.DType
	case plan.store.dtype != tensor.Float32:
		return out, fmt.Errorf("an image of %v becomes %v or float32, not %v", m.DType, m.DType, plan.store.dtype)
	case plan.store.scale && rasterWhite(m.DType) == 0:
		return out, fmt.Errorf("%v has no value for white that float32 could be scaled by", m.DType)
	}
	return out, nil
}

// rasterWhite returns the value that ConvertDType maps to 1: the largest value of an integer type,
// as in torchvision, and 1 for floats, which stay as they are. 0 means that the type has no such
// value.
func rasterWhite(d tensor.DType) float32 {
	switch d {
	case tensor.Uint8:
		return math.MaxUint8
	case tensor.Uint16:
		return math.MaxUint16
	case tensor.Float16, tensor.Float32, tensor.Float64:
		return 1
	}
	return 0
}

// Raster writes the record that the pipeline makes from m to dst, which has the length of
// RasterOutput. Filters compute in float64 and round to the image's type after each axis: the
// pixels equal Pillow's resize of I;16, I and F, bit for bit where Pillow does not overflow. Raster
// allocates every intermediate image; it serves preprocessing, not the training loop.
func (p *Pipeline) Raster(dst []byte, m Raster) error {
	var plan Plan
	out, err := p.planRaster(&plan, m)
	if err != nil {
		return err
	}
	if len(dst) != out.Bytes() || len(m.Pix) != m.W*m.H*m.C*m.DType.Size() {
		return errors.New("transforms: the memory of a Raster or of its record has the wrong length for its size")
	}
	now := raster(m)
	for i := range plan.passes {
		now = now.run(&plan.passes[i])
	}
	if out.DType != now.DType || plan.store.normal {
		now = now.float32(&plan.store)
	}
	now.write(dst, out.Layout)
	return nil
}

// raster is a Raster on its way through the passes.
type raster Raster

// run returns the image after a pass.
func (m raster) run(s *pass) raster {
	m = m.crop(s.src)
	if !s.resize {
		return m
	}
	axes := []func() raster{
		func() raster { return m.resizeRows(s.w, s.crop.Min.X, s.crop.Max.X, s.filter) },
		func() raster { return m.resizeColumns(s.h, s.crop.Min.Y, s.crop.Max.Y, s.filter) },
	}
	if s.vfirst {
		axes[0], axes[1] = axes[1], axes[0]
	}
	for _, resize := range axes {
		m = resize()
	}
	return m
}

// crop returns a part of the image.
func (m raster) crop(r image.Rectangle) raster {
	if r == image.Rect(0, 0, m.W, m.H) {
		return m
	}
	size := m.C * m.DType.Size()
	out := raster{W: r.Dx(), H: r.Dy(), C: m.C, DType: m.DType}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		out.Pix = append(out.Pix, m.Pix[(y*m.W+r.Min.X)*size:][:out.W*size]...)
	}
	return out
}

// resizeRows resizes every row to w pixels, and returns columns [from, to) of the result.
func (m raster) resizeRows(w, from, to int, f Interpolation) raster {
	if w == m.W {
		return m.crop(image.Rect(from, 0, to, m.H))
	}
	var weights kernel.Weights
	weights.Init(m.W, w, from, to, f)
	out := raster{W: to - from, H: m.H, C: m.C, DType: m.DType}
	row, made := make([]float64, m.W*m.C), make([]float64, out.W*m.C)
	out.Pix = make([]byte, out.H*len(made)*m.DType.Size())
	taps := make([][]float64, out.W)
	for i := range taps {
		taps[i] = append(taps[i], weights.Real(from+i)...)
	}
	for y := range m.H {
		load(row, m.Pix[y*len(row)*m.DType.Size():], m.DType)
		for i, k := range taps {
			first, _ := weights.Span(from + i)
			for c := range m.C {
				sum := 0.0
				for j, v := range k {
					sum += float64(row[(first+j)*m.C+c] * v)
				}
				made[i*m.C+c] = sum
			}
		}
		m.saveRow(out.Pix[y*len(made)*m.DType.Size():], made)
	}
	return out
}

// resizeColumns resizes every column to h pixels, and returns rows [from, to) of the result. It
// works row by row, in the order of the memory.
func (m raster) resizeColumns(h, from, to int, f Interpolation) raster {
	if h == m.H {
		return m.crop(image.Rect(0, from, m.W, to))
	}
	var weights kernel.Weights
	weights.Init(m.H, h, from, to, f)
	out := raster{W: m.W, H: to - from, C: m.C, DType: m.DType}
	row, sum := make([]float64, m.W*m.C), make([]float64, m.W*m.C)
	bytes := len(row) * m.DType.Size()
	out.Pix = make([]byte, out.H*bytes)
	for y := range out.H {
		clear(sum)
		first, _ := weights.Span(from + y)
		for j, k := range weights.Real(from + y) {
			load(row, m.Pix[(first+j)*bytes:], m.DType)
			for i, v := range row {
				sum[i] += float64(v * k)
			}
		}
		m.saveRow(out.Pix[y*bytes:], sum)
	}
	return out
}

// saveRow stores sums in the image's type. Integers are rounded as Pillow does, halves away from
// zero.
func (m raster) saveRow(dst []byte, x []float64) {
	if !m.DType.IsFloat() {
		for i, v := range x {
			x[i] = math.Copysign(math.Floor(math.Abs(v)+0.5), v)
		}
	}
	roundAll(x, m.DType)
	save(dst[:len(x)*m.DType.Size()], x, m.DType)
}

// float32 converts all values to float32, and normalizes them.
func (m raster) float32(s *store) raster {
	out := raster{W: m.W, H: m.H, C: m.C, DType: tensor.Float32, Pix: make([]byte, 4*m.W*m.H*m.C)}
	row, white := make([]float64, m.W*m.C), rasterWhite(m.DType)
	for y := range m.H {
		load(row, m.Pix[y*len(row)*m.DType.Size():], m.DType)
		for i, v := range row {
			x := float32(v)
			if s.scale {
				x /= white
			}
			if s.normal {
				c := i % m.C % len(s.mean) // there is one mean and std, or there are three channels
				x = (x - s.mean[c]) / s.std[c]
			}
			row[i] = float64(x)
		}
		save(out.Pix[y*len(row)*4:][:len(row)*4], row, tensor.Float32)
	}
	return out
}

// write copies the pixels to dst in the layout l.
func (m raster) write(dst []byte, l Layout) {
	if l == HWC || m.C == 1 {
		copy(dst, m.Pix)
		return
	}
	size := m.DType.Size()
	for c := range m.C {
		plane := dst[c*m.W*m.H*size:]
		for i := range m.W * m.H {
			copy(plane[i*size:][:size], m.Pix[(i*m.C+c)*size:])
		}
	}
}
