package transforms

import (
	"errors"
	"fmt"
	"image"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// Image is an 8-bit image: rows top to bottom, pixels left to right, channels interleaved.
// Its memory belongs to its maker.
type Image struct {
	Pix    []byte // pixel (x, y) starts at y*Stride + x*Step
	W, H   int    // pixels
	C      int    // channels: 1 gray, 3 RGB
	Step   int    // bytes from a pixel to the next: C, or 4 for RGB with a fourth byte that means nothing
	Stride int    // bytes from a row to the next
}

// A Source is an image whose pixels may not be decoded yet: an Image is one, and so is a
// JPEG that is decoded only where a crop needs it. A Source serves one goroutine.
type Source interface {
	// Size returns width, height (pixels) and channels (1 or 3).
	Size() (w, h, c int)

	// Scan calls f with strips of consecutive rows that together are the rectangle r,
	// top down, each row once. A strip's column 0 is r.Min.X, and y is the row of the
	// image that its row 0 is. The strip is valid during the call. Scan may be called
	// again, then it starts over. An error of f ends the scan and is returned as it is.
	Scan(r image.Rectangle, f func(y int, strip Image) error) error
}

// NewImage returns a black image with its own memory, without gaps.
func NewImage(w, h, c int) *Image {
	return &Image{Pix: make([]byte, w*h*c), W: w, H: h, C: c, Step: c, Stride: w * c}
}

// Size returns width, height and channels.
func (m *Image) Size() (w, h, c int) { return m.W, m.H, m.C }

// Scan calls f once, with r as a part of m.
func (m *Image) Scan(r image.Rectangle, f func(y int, strip Image) error) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if !r.In(m.Bounds()) {
		return fmt.Errorf("scan of %v leaves the image, %dx%d", r, m.W, m.H)
	}
	if r.Empty() {
		return nil
	}
	return f(r.Min.Y, m.Sub(r))
}

// Bounds returns the rectangle of the whole image, with the origin at 0, 0.
func (m *Image) Bounds() image.Rectangle { return image.Rect(0, 0, m.W, m.H) }

// Sub returns the part r of m, which must be within it, over the same memory.
func (m *Image) Sub(r image.Rectangle) Image {
	s := *m
	s.W, s.H = r.Dx(), r.Dy()
	from := r.Min.Y*m.Stride + r.Min.X*m.Step
	s.Pix = m.Pix[from : from+(s.H-1)*s.Stride+(s.W-1)*s.Step+s.C]
	return s
}

// Row returns row y from its first pixel to the last channel of its last.
func (m *Image) Row(y int) []byte {
	from := y * m.Stride
	return m.Pix[from : from+(m.W-1)*m.Step+m.C]
}

// Validate reports what makes the fields of m contradict each other.
func (m *Image) Validate() error {
	switch {
	case m.W <= 0 || m.H <= 0:
		return fmt.Errorf("image of %dx%d pixels: both must be positive", m.W, m.H)
	case m.C != 1 && m.C != 3:
		return fmt.Errorf("image of %d channels: must be 1 (gray) or 3 (RGB)", m.C)
	case m.Step != m.C && (m.C != 3 || m.Step != 4):
		return fmt.Errorf("image of %d channels with %d bytes from pixel to pixel", m.C, m.Step)
	case m.H > 1 && m.Stride < (m.W-1)*m.Step+m.C:
		return fmt.Errorf("image of %d pixels a row with only %d bytes from row to row", m.W, m.Stride)
	case len(m.Pix) < (m.H-1)*m.Stride+(m.W-1)*m.Step+m.C:
		return fmt.Errorf("image of %dx%d pixels in only %d bytes", m.W, m.H, len(m.Pix))
	}
	return nil
}

// Planar is an 8-bit image with its channels one after the other, as records in layout CHW
// are stored. It is a Source; a Runner whose pipeline only crops, mirrors, converts and
// normalizes to CHW works on the planes as they are.
type Planar struct {
	Pix     []byte // C planes of W*H bytes, without gaps
	W, H, C int    // pixels, and channels: 1 or 3

	strip []byte // rows that Scan has interleaved
}

// Size returns width, height and channels.
func (m *Planar) Size() (w, h, c int) { return m.W, m.H, m.C }

// Validate reports what makes the fields of m contradict each other.
func (m *Planar) Validate() error {
	if m.C != 1 && m.C != 3 {
		return fmt.Errorf("image of %d channels: must be 1 (gray) or 3 (RGB)", m.C)
	}
	if m.W <= 0 || m.H <= 0 || len(m.Pix) != m.W*m.H*m.C {
		return fmt.Errorf("image of %d planes of %dx%d pixels in %d bytes", m.C, m.W, m.H, len(m.Pix))
	}
	return nil
}

// Scan interleaves the channels of r some rows at a time.
func (m *Planar) Scan(r image.Rectangle, f func(y int, strip Image) error) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if !r.In(image.Rect(0, 0, m.W, m.H)) {
		return fmt.Errorf("scan of %v leaves the image, %dx%d", r, m.W, m.H)
	}
	if m.C == 1 {
		all := Image{Pix: m.Pix, W: m.W, H: m.H, C: 1, Step: 1, Stride: m.W}
		return all.Scan(r, f)
	}
	m.strip = grow(m.strip, stripRows*r.Dx()*3)
	for y := r.Min.Y; y < r.Max.Y; y += stripRows {
		strip := shapeImage(m.strip, r.Dx(), min(stripRows, r.Max.Y-y), 3)
		for i := range strip.H {
			red, green, blue := planeRows(m.Pix, y+i, 1, m.W, m.H)
			kernel.Interleave(strip.Row(i), red[r.Min.X:r.Max.X], green[r.Min.X:r.Max.X], blue[r.Min.X:r.Max.X])
		}
		if err := f(y, strip); err != nil {
			return err
		}
	}
	return nil
}

// planar does the work of a plan that needs no more than single planes, and reports whether
// this one is such.
func (r *Runner) planar(t target, m *Planar) (bool, error) {
	p := &r.plan.passes[0]
	if len(r.plan.passes) > 1 || p.resize || p.padded || p.post != (colorMode{}) || (r.plan.store.layout != CHW && m.C != 1) {
		return false, nil
	}
	if err := m.Validate(); err != nil {
		return true, err
	}
	switch t.dtype {
	case tensor.Uint8:
		planes(r, t.dst, m, p, copyBytes)
	case tensor.Float32:
		planes(r, t.f32, m, p, (*kernel.Norm).F32)
	default:
		planes(r, t.u16, m, p, (*kernel.Norm).U16)
	}
	return true, nil
}

func copyBytes(_ *kernel.Norm, dst, src []byte, _ int) { copy(dst, src) }

// planes converts all planes: whole ones where nothing is cut or mirrored, else rows, which
// are mirrored some KiB at a time.
func planes[T any](r *Runner, dst []T, m *Planar, p *pass, convert func(*kernel.Norm, []T, []byte, int)) {
	w, h := p.src.Dx(), p.src.Dy()
	strip := r.scan.out.strip(p, w, h)
	for c := range m.C {
		from, to := m.Pix[c*m.W*m.H:(c+1)*m.W*m.H], dst[c*w*h:(c+1)*w*h]
		if w == m.W && !p.flipH && !p.flipV {
			convert(&r.norm, to, from[p.src.Min.Y*w:p.src.Max.Y*w], c)
			continue
		}
		rows := max(1, len(strip)/w)
		for y := 0; y < h; y += rows {
			n := min(rows, h-y)
			src, at := from[(p.src.Min.Y+y)*m.W+p.src.Min.X:][:(n-1)*m.W+w], y
			if p.flipH {
				kernel.ReverseRows(strip[:n*w], src, w, m.W)
				src = strip[:n*w]
			}
			if p.flipV {
				at = h - 1 - y
			}
			convert(&r.norm, to[at*w:(at+n)*w], src, c)
		}
	}
}

// mirrored is about how many bytes are mirrored at a time: they stay in the nearest cache.
const mirrored = 8 << 10

// strip returns memory for the rows of a plane of w x h pixels that are mirrored at a time:
// one where they are turned upside down too, and none where they are not mirrored.
func (s *sink) strip(p *pass, w, h int) []byte {
	switch {
	case !p.flipH:
		return nil
	case p.flipV:
		h = 1
	}
	s.scratch[0] = grow(s.scratch[0], w*max(1, min(h, mirrored/w)))
	return s.scratch[0]
}

// SourceOf returns a stored uint8 record as a Source over the same bytes: a Planar or an
// Image, as info says.
func SourceOf(info Info, record []byte) (Source, error) {
	if info.dtype() != tensor.Uint8 {
		return nil, errors.New("transforms: only uint8 records are images; this is " + info.dtype().String())
	}
	if info.Layout == CHW {
		m := &Planar{Pix: record, W: info.W, H: info.H, C: info.C}
		return m, m.Validate()
	}
	m := &Image{Pix: record, W: info.W, H: info.H, C: info.C, Step: info.C, Stride: info.W * info.C}
	return m, m.Validate()
}

// Layout is the order of a record's axes.
type Layout uint8

// The layouts. HWC is how images are decoded, CHW what most training code wants.
const (
	HWC Layout = iota
	CHW
)

// String returns "hwc" or "chw".
func (l Layout) String() string {
	if l == CHW {
		return "chw"
	}
	return "hwc"
}

// MarshalText writes "hwc" or "chw".
func (l Layout) MarshalText() ([]byte, error) {
	if l > CHW {
		return nil, fmt.Errorf("transforms: layout %d has no name", uint8(l))
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads "hwc" or "chw".
func (l *Layout) UnmarshalText(b []byte) error {
	switch string(b) {
	case "hwc":
		*l = HWC
	case "chw":
		*l = CHW
	default:
		return fmt.Errorf("unknown layout %q; known are hwc, chw", b)
	}
	return nil
}

// Info says what an image or a record is without its pixels.
type Info struct {
	W, H, C int          // pixels, and channels: 1 gray or 3 RGB
	DType   tensor.DType // Invalid means Uint8
	Layout  Layout
}

// InfoOf returns what a Source delivers.
func InfoOf(s Source) Info {
	w, h, c := s.Size()
	return Info{W: w, H: h, C: c, DType: tensor.Uint8}
}

// Shape returns (C, H, W) or (H, W, C), as Layout says. A gray record keeps its axis C of
// length 1, as in torchvision.
func (i Info) Shape() tensor.Shape {
	if i.Layout == CHW {
		return tensor.Shape{i.C, i.H, i.W}
	}
	return tensor.Shape{i.H, i.W, i.C}
}

// Bytes returns the length of the record.
func (i Info) Bytes() int { return i.W * i.H * i.C * i.dtype().Size() }

// String writes type and shape: "uint8 (3, 224, 224)".
func (i Info) String() string { return i.dtype().String() + " " + i.Shape().String() }

func (i Info) dtype() tensor.DType {
	if i.DType == tensor.Invalid {
		return tensor.Uint8
	}
	return i.DType
}

func (i Info) check() error {
	const most = 1 << 20
	switch {
	case i.W <= 0 || i.H <= 0 || i.W > most || i.H > most:
		return fmt.Errorf("input is %dx%d pixels; each side must be 1 to %d", i.W, i.H, most)
	case i.C != 1 && i.C != 3:
		return fmt.Errorf("input has %d channels; must be 1 (gray) or 3 (RGB)", i.C)
	case i.dtype() != tensor.Uint8 || i.Layout != HWC:
		return fmt.Errorf("input is %v in layout %v; a pipeline starts from uint8 hwc", i.DType, i.Layout)
	}
	return nil
}
