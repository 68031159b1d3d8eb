package transforms

import (
	"errors"
	"fmt"
	"image"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// Plan collects the operations of a pipeline on one image. Each Build adds to the Plan, and an
// operation that fits into an existing pass over the pixels is fused with it. Passes cost the time,
// since each pass reads and writes the image. A Plan belongs to one Runner and is reused: Build is
// called for every image of a random pipeline, and must not allocate.
type Plan struct {
	info   Info
	rnd    Rand
	passes passes
	ops    []opCall
	erased erasures
	store  store
	matrix [][]float64 // multiplies the finished record; nil for none
	mean   []float64   // subtracted before the matrix
	moves  Moves       // where pixels go
	boxes  []float32   // boxes on the image before all moves; nil if there are none
	at     Transform   // transform being built
}

// ImageOp changes an image as a whole; m has no gaps. An ImageOp works in place, or shapes other by
// Reshape, writes other and swaps the two: *m, *other = *other, *m. It must keep no reference to
// either image, because the Runner reuses both.
type ImageOp func(m, other *Image, args OpArgs)

// OpArgs are the parameters of an ImageOp, in the ImageOp's own order. An array of numbers, unlike
// a closure, is no allocation per image.
type OpArgs [10]float64

type opCall struct {
	op   ImageOp
	args OpArgs
	mix  mixStep // of the Runner's mixer, instead of op
}

// pass is one reading of an image and one writing of another. Its steps happen in the order of the
// fields; an operation that would have to come before a step that is set already begins a new pass.
type pass struct {
	src     image.Rectangle // part of the input that is used
	pre     colorMode
	resize  bool
	w, h    int // size of src after the resize
	filter  kernel.Filter
	vfirst  bool            // the vertical resize comes before the horizontal one
	crop    image.Rectangle // part of the w x h result
	post    colorMode
	flipH   bool
	flipV   bool
	padded  bool
	pad     [4]int // left, top, right, bottom
	padFill [3]byte
	padMode PadMode
	c       int    // channels of the result
	ops     [2]int // then, Plan.ops[ops[0]:ops[1]] change the image
}

// colorMode is a change of channels. The zero value keeps the channels.
type colorMode struct {
	gray bool // RGB becomes luma
	out  int  // channels that come out; 0 means as many as go in
}

// store says how the last pass writes pixels: as bytes, or as numbers (x/255-mean)/std.
type store struct {
	dtype     tensor.DType
	layout    Layout
	scale     bool
	normal    bool
	mean, std [3]float32
}

func (p *Plan) reset(in Info, rnd Rand) error {
	if err := checkInput(in); err != nil {
		return err
	}
	in.DType = tensor.Uint8
	p.info, p.rnd = in, rnd
	p.passes, p.ops, p.erased = append(p.passes[:0], newPass(in)), p.ops[:0], p.erased[:0]
	p.store = store{dtype: tensor.Uint8}
	p.matrix, p.mean = nil, nil
	p.moves.reset(in.W, in.H)
	return nil
}

func newPass(in Info) pass {
	all := image.Rect(0, 0, in.W, in.H)
	return pass{src: all, w: in.W, h: in.H, crop: all, c: in.C}
}

// finish completes the plan. The last pass stores the record in its final type and layout, so that
// it must have no image operations of its own: those need bytes.
func (p *Plan) finish() {
	p.open()
	p.store.dtype, p.store.layout = p.info.DType, p.info.Layout
}

// Info describes the image that the transforms so far make.
func (p *Plan) Info() Info { return p.info }

// Rand returns the random stream of the record.
func (p *Plan) Rand() *Rand { return &p.rnd }

// open returns a pass that accepts more steps: the last pass, unless image operations follow it.
func (p *Plan) open() *pass {
	if s := p.passes.last(); s.ops[0] == s.ops[1] {
		return s
	}
	return p.passes.next(p.info)
}

// Apply adds an op that changes the image to w by h pixels. An op costs a pass of its own. Masks,
// boxes and keypoints cannot follow it, since nothing says where the pixels go; see Recolor.
func (p *Plan) Apply(op ImageOp, w, h int, args ...float64) error {
	p.moves.lost = p.at
	return p.apply(op, w, h, args...)
}

// Recolor is Apply for an op that moves no pixels, so that masks, boxes and keypoints stay where they are.
func (p *Plan) Recolor(op ImageOp, args ...float64) error {
	return p.apply(op, p.info.W, p.info.H, args...)
}

// moved records a move of pixels. It is called after p.info has the new size.
func (p *Plan) moved(kind moveKind, at [4]int, a ...float64) {
	p.moves.add(kind, p.info.W, p.info.H, at, a...)
}

// apply adds an image operation after the last pass. Several operations in a row share one pass.
func (p *Plan) apply(op ImageOp, w, h int, args ...float64) error {
	if err := p.bytes(); err != nil {
		return err
	}
	if err := canBecome(p.info, w, h); err != nil {
		return err
	}
	call := opCall{op: op}
	copy(call.args[:], args)
	s := p.passes.last()
	if s.ops[0] == s.ops[1] {
		s.ops = [2]int{len(p.ops), len(p.ops)}
	}
	p.ops = append(p.ops, call)
	s.ops[1]++
	p.info.W, p.info.H = w, h
	return nil
}

// passes are the passes of a plan. Each pass reads the result of the pass before.
type passes []pass

func (l passes) last() *pass { return &l[len(l)-1] }

// next begins a pass over the result of the passes so far, whose info is in. Between passes images
// are always HWC.
func (l *passes) next(in Info) *pass {
	in.Layout = HWC
	*l = append(*l, newPass(in))
	return l.last()
}

var errNotBytes = errors.New("input is not uint8 any more; put this transform before the one that makes floats, " +
	"such as ToTensor")

// bytes returns an error if the image is not uint8 any more, or if parts of the record were erased.
// Transforms call it even if a draw decides that they do nothing: a wrong order of transforms must
// be an error for every record, and not only for some.
func (p *Plan) bytes() error {
	if p.info.DType != tensor.Uint8 {
		return errNotBytes
	}
	return p.erased.none()
}

// erasures are the rectangles that overwrite parts of the finished record.
type erasures []erasure

// none returns an error if rectangles were erased already: only flips may follow, because an erased
// rectangle has a fixed place in the record.
func (e erasures) none() error {
	if len(e) > 0 {
		return errErased
	}
	return nil
}

// maxPixels limits what an operation makes: 1.5 times what Pillow takes for an attack.
const maxPixels = 1 << 28

// canBecome returns an error if the image cannot become w by h pixels. The division avoids an
// overflow of the product.
func canBecome(in Info, w, h int) error {
	if w <= 0 || h <= 0 {
		return fmt.Errorf("input of %dx%d pixels would become %dx%d", in.W, in.H, w, h)
	}
	if w > maxPixels/h {
		return fmt.Errorf("input of %dx%d pixels would become %dx%d, more than %d pixels", in.W, in.H, w, h,
			maxPixels)
	}
	return nil
}

// Interpolation is a resampling filter, by its definition in Pillow.
type Interpolation = kernel.Filter

// ParseInterpolation returns the filter nearest, box, bilinear, hamming, bicubic or lanczos.
func ParseInterpolation(name string) (Interpolation, error) { return kernel.ParseFilter(name) }

// Resize makes the image w by h pixels: first the width, then, of the result rounded to
// bytes, the height.
func (p *Plan) Resize(w, h int, f Interpolation) error { return p.resize(w, h, f, widthFirst) }

// passOrder says which side a resize changes first. The result is rounded to bytes in between, so
// that the order shows in the pixels.
type passOrder bool

const (
	widthFirst  passOrder = false
	heightFirst passOrder = true
)

// resize fuses the resize with the last pass, unless that pass already resizes, mirrors or pads,
// all of which come after a resize. A change of channels that came before stays before it.
func (p *Plan) resize(w, h int, f Interpolation, first passOrder) error {
	if err := p.bytes(); err != nil {
		return err
	}
	if err := canBecome(p.info, w, h); err != nil {
		return err
	}
	if w == p.info.W && h == p.info.H {
		return nil
	}
	s := p.open()
	if s.resize || s.flipH || s.flipV || s.padded {
		s = p.passes.next(p.info)
	}
	s.resize, s.w, s.h, s.filter, s.vfirst = true, w, h, f, first == heightFirst
	s.crop = image.Rect(0, 0, w, h)
	s.pre, s.post = s.post, colorMode{}
	p.info.W, p.info.H = w, h
	p.moved(moveResize, [4]int{})
	return nil
}

// Crop keeps the rectangle r of the image. Boxes are cut off at its edges, even where r is the
// whole image. A crop after a resize narrows the part of the result that is computed; without a
// resize it narrows the part of the source that is decoded.
func (p *Plan) Crop(r image.Rectangle) error {
	all := image.Rect(0, 0, p.info.W, p.info.H)
	if r.Empty() || !r.In(all) {
		return fmt.Errorf("rectangle %v leaves the input of %dx%d pixels", r, p.info.W, p.info.H)
	}
	if r == all {
		p.moved(moveClamp, [4]int{})
		return nil
	}
	if err := p.erased.none(); err != nil {
		return err
	}
	s := p.open()
	if s.padded {
		if err := p.bytes(); err != nil {
			return err
		}
		s = p.passes.next(p.info)
	}
	p.info.W, p.info.H = r.Dx(), r.Dy()
	p.moved(moveCrop, [4]int{r.Min.X, r.Min.Y, r.Max.X, r.Max.Y})
	r = mirror(r, all.Max.X, all.Max.Y, s.flipH, s.flipV)
	if s.resize {
		s.crop = r.Add(s.crop.Min)
		return nil
	}
	s.src = r.Add(s.src.Min)
	s.w, s.h = r.Dx(), r.Dy()
	s.crop = image.Rect(0, 0, s.w, s.h)
	return nil
}

// mirror returns where the rectangle r of an image of w x h pixels lies after flips.
func mirror(r image.Rectangle, w, h int, horizontal, vertical bool) image.Rectangle {
	if horizontal {
		r.Min.X, r.Max.X = w-r.Max.X, w-r.Min.X
	}
	if vertical {
		r.Min.Y, r.Max.Y = h-r.Max.Y, h-r.Min.Y
	}
	return r
}

// FlipHorizontal mirrors the image left to right. Two flips cancel out. Borders of the pass are
// exchanged: a pass flips before it pads.
func (p *Plan) FlipHorizontal() {
	for i := range p.erased {
		r := &p.erased[i].r
		r.Min.X, r.Max.X = p.info.W-r.Max.X, p.info.W-r.Min.X
	}
	s := p.open()
	s.flipH = !s.flipH
	p.moved(moveFlipH, [4]int{})
	s.pad[0], s.pad[2] = s.pad[2], s.pad[0]
}

// FlipVertical turns the image upside down, as FlipHorizontal does for the other axis.
func (p *Plan) FlipVertical() {
	for i := range p.erased {
		r := &p.erased[i].r
		r.Min.Y, r.Max.Y = p.info.H-r.Max.Y, p.info.H-r.Min.Y
	}
	s := p.open()
	s.flipV = !s.flipV
	p.moved(moveFlipV, [4]int{})
	s.pad[1], s.pad[3] = s.pad[3], s.pad[1]
}

// Pad adds a border around the image.
func (p *Plan) Pad(left, top, right, bottom int, mode PadMode, fill [3]byte) error {
	if err := p.bytes(); err != nil {
		return err
	}
	if min(left, top, right, bottom) < 0 {
		return fmt.Errorf("padding %v must not be negative; crop instead", [4]int{left, top, right, bottom})
	}
	if err := canBecome(p.info, p.info.W+left+right, p.info.H+top+bottom); err != nil {
		return err
	}
	s := p.open()
	if s.padded {
		s = p.passes.next(p.info)
	}
	s.padded, s.pad, s.padMode, s.padFill = true, [4]int{left, top, right, bottom}, mode, fill
	p.info.W += left + right
	p.info.H += top + bottom
	p.moved(movePad, [4]int{left, top, right, bottom})
	p.moves.list[len(p.moves.list)-1].mode = mode
	return nil
}

// Gray makes the image gray, with 1 channel or 3 equal ones.
func (p *Plan) Gray(channels int) error {
	return p.recolor(colorMode{gray: p.info.C == 3, out: channels})
}

// Channels gives the image 1 or 3 channels.
func (p *Plan) Channels(channels int) error { return p.recolor(colorMode{out: channels}) }

// recolor adds a change of channels to the last pass. After a border it needs a new pass, because a
// pass recolors before it pads.
func (p *Plan) recolor(to colorMode) error {
	if err := p.bytes(); err != nil {
		return err
	}
	if !to.gray && to.out == p.info.C {
		return nil
	}
	s := p.open()
	if s.padded {
		s = p.passes.next(p.info)
	}
	s.post.gray = s.post.gray || to.gray
	s.post.out, s.c = to.out, to.out
	p.info.C = to.out
	return nil
}

// SetLayout sets the order of the record's axes.
func (p *Plan) SetLayout(l Layout) { p.info.Layout = l }

// Convert makes the record's elements numbers of type dt, 0 to 255.
func (p *Plan) Convert(dt tensor.DType) error { return p.convert(dt, unscaled) }

// ConvertScaled makes the record's elements numbers of type dt, divided by 255.
func (p *Plan) ConvertScaled(dt tensor.DType) error { return p.convert(dt, scaled) }

// scaling says whether a conversion divides by 255.
type scaling bool

const (
	unscaled scaling = false
	scaled   scaling = true
)

// convert sets the type of the record. It converts nothing yet: the last pass does, while it
// stores.
func (p *Plan) convert(dt tensor.DType, by scaling) error {
	if dt == p.info.DType {
		return nil
	}
	if p.info.DType != tensor.Uint8 {
		return fmt.Errorf("input is %v already; convert once, and to the final type", p.info.DType)
	}
	p.info.DType, p.store.scale = dt, bool(by)
	return p.erased.none()
}

// Normalize subtracts mean and divides by std, which have 1 or 3 values. It costs no pass: the last
// pass normalizes while it stores.
func (p *Plan) Normalize(mean, std []float64) error {
	if p.info.DType == tensor.Uint8 {
		return errors.New("input is uint8; put ToTensor or ConvertDType before it")
	}
	if p.store.normal {
		return errors.New("input is normalized already")
	}
	if len(mean) != 1 && len(mean) != p.info.C {
		return fmt.Errorf("%d means for an input of %d channels", len(mean), p.info.C)
	}
	if err := p.erased.none(); err != nil {
		return err
	}
	p.store.normal = true
	for c := range p.store.mean {
		i := c % len(mean)
		p.store.mean[c], p.store.std[c] = float32(mean[i]), float32(std[i])
	}
	return nil
}
