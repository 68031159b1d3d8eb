package render

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
)

// palette has the colors of Ultralytics (ultralytics/utils/plotting.py), which are easy to tell
// apart.
var palette = []color.RGBA{
	{0xff, 0x38, 0x38, 255}, {0xff, 0x9d, 0x97, 255}, {0xff, 0x70, 0x1f, 255}, {0xff, 0xb2, 0x1d, 255},
	{0xcf, 0xd2, 0x31, 255},
	{0x48, 0xf9, 0x0a, 255}, {0x92, 0xcc, 0x17, 255}, {0x3d, 0xdb, 0x86, 255}, {0x1a, 0x93, 0x34, 255},
	{0x00, 0xd4, 0xbb, 255},
	{0x2c, 0x99, 0xa8, 255}, {0x00, 0xc2, 0xff, 255}, {0x34, 0x45, 0x93, 255}, {0x64, 0x73, 0xff, 255},
	{0x00, 0x18, 0xec, 255},
	{0x84, 0x38, 0xff, 255}, {0x52, 0x00, 0x85, 255}, {0xcb, 0x38, 0xff, 255}, {0xff, 0x95, 0xc8, 255},
	{0xff, 0x37, 0xc7, 255},
}

// Color returns the color of a class. Colors repeat after 20 classes.
func Color(class int) color.RGBA { return palette[class%len(palette)] }

// skeleton is the edges between COCO's 17 keypoints, numbered from 0, and the color of each.
var skeleton = []struct {
	a, b  int
	color color.RGBA
}{
	{15, 13, legs}, {13, 11, legs}, {16, 14, legs}, {14, 12, legs}, {11, 12, trunk}, {5, 11, trunk}, {6, 12, trunk},
	{5, 6, trunk},
	{5, 7, arms}, {6, 8, arms}, {7, 9, arms}, {8, 10, arms}, {1, 2, head}, {0, 1, head}, {0, 2, head}, {1, 3, head},
	{2, 4, head}, {3, 5, head}, {4, 6, head},
}

var (
	legs  = color.RGBA{51, 153, 255, 255}
	trunk = color.RGBA{255, 51, 255, 255}
	arms  = color.RGBA{255, 128, 0, 255}
	head  = color.RGBA{0, 255, 0, 255}
)

// Draw draws the marks over a picture of the image that fills `at`. Masks come first and names
// last, so that no line hides a name.
func (m *Marks) Draw(dst *image.RGBA, at image.Rectangle, face font.Face) {
	c := canvas{dst: dst, at: at, sx: float64(at.Dx()) / float64(max(m.W, 1)), sy: float64(at.Dy()) / float64(max(m.H, 1)),
		face: face}
	c.pixels(m, func(p int) (color.RGBA, bool) {
		if m.classes == nil || m.classes[p] == 0 {
			return color.RGBA{}, false
		}
		return palette[m.classes[p]-1], true
	})
	for _, o := range m.objects {
		if o.mask != nil {
			c.pixels(m, func(p int) (color.RGBA, bool) { return Color(o.color), o.mask[p] != 0 })
		}
	}
	for _, o := range m.objects {
		if o.box != nil {
			c.box(o)
		}
	}
	for _, o := range m.objects {
		c.points(o.points, max(m.perPoint, 1))
	}
	for _, o := range m.objects {
		if o.box != nil && o.name != "" {
			c.tab(o)
		}
	}
}

// canvas is the part of a picture that an image fills. sx and sy are pixels of the picture per
// pixel of the image.
type canvas struct {
	dst    *image.RGBA
	at     image.Rectangle
	sx, sy float64
	face   font.Face
}

// x returns the column in dst of a coordinate of the image, in pixels.
func (c canvas) x(v float32) int { return c.at.Min.X + int(math.Round(float64(v)*c.sx)) }

// y returns the row in dst of a coordinate of the image, in pixels.
func (c canvas) y(v float32) int { return c.at.Min.Y + int(math.Round(float64(v)*c.sy)) }

// pixels blends colors into the picture, half and half. of returns the color of pixel p of the
// image, or false for a pixel that does not change.
func (c canvas) pixels(m *Marks, of func(p int) (color.RGBA, bool)) {
	for y := range c.at.Dy() {
		row := min(m.H-1, int((float64(y)+.5)/c.sy)) * m.W
		for x := range c.at.Dx() {
			if col, is := of(row + min(m.W-1, int((float64(x)+.5)/c.sx))); is {
				px := c.dst.Pix[c.dst.PixOffset(c.at.Min.X+x, c.at.Min.Y+y):][:3]
				px[0], px[1], px[2] = half(px[0], col.R), half(px[1], col.G), half(px[2], col.B)
			}
		}
	}
}

// half returns the average of two bytes.
func half(a, b uint8) uint8 { return uint8((int(a) + int(b)) / 2) }

// fill fills a rectangle, as far as it is in the image.
func (c canvas) fill(r image.Rectangle, col color.RGBA) {
	draw.Draw(c.dst, r.Intersect(c.at), image.NewUniform(col), image.Point{}, draw.Src)
}

// line is the width of lines, in pixels.
const line = 2

// rect returns the place of a box in the picture.
func (c canvas) rect(o object) image.Rectangle {
	return image.Rect(c.x(o.box[0]), c.y(o.box[1]), c.x(o.box[2]), c.y(o.box[3]))
}

// box draws the edges of a box, on the inside. A box without an area is drawn one line wide.
func (c canvas) box(o object) {
	r, col := c.rect(o), Color(o.color)
	r.Max.X, r.Max.Y = max(r.Max.X, r.Min.X+line), max(r.Max.Y, r.Min.Y+line)
	c.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+line), col)
	c.fill(image.Rect(r.Min.X, r.Max.Y-line, r.Max.X, r.Max.Y), col)
	c.fill(image.Rect(r.Min.X, r.Min.Y, r.Min.X+line, r.Max.Y), col)
	c.fill(image.Rect(r.Max.X-line, r.Min.Y, r.Max.X, r.Max.Y), col)
}

// tab writes the name of a class above its box or, if there is no room above, into the box. The
// text is black on light colors and white on dark ones, by the luma of ITU-R BT.601.
func (c canvas) tab(o object) {
	const pad = 2
	m := c.face.Metrics()
	w, h := font.MeasureString(c.face, o.name).Ceil()+2*pad, (m.Ascent + m.Descent).Ceil()
	r := c.rect(o)
	x := max(c.at.Min.X, min(r.Min.X, c.at.Max.X-w))
	y := r.Min.Y - h
	if y < c.at.Min.Y {
		y = max(r.Min.Y, c.at.Min.Y)
	}
	col := Color(o.color)
	c.fill(image.Rect(x, y, x+w, y+h), col)
	ink := color.White
	if 299*int(col.R)+587*int(col.G)+114*int(col.B) > 150_000 {
		ink = color.Black
	}
	part := c.dst.SubImage(c.at).(*image.RGBA)
	d := font.Drawer{Dst: part, Src: image.NewUniform(ink), Face: c.face, Dot: fixed.P(x+pad, y+m.Ascent.Ceil())}
	d.DrawString(o.name)
}

// points draws keypoints, each of `per` numbers: x, y and, if there are three, visibility, where 0
// means absent. 17 keypoints are taken for a person in COCO's order, and joined by the skeleton.
func (c canvas) points(list []float32, per int) {
	at := func(i int) (x, y float64, ok bool) {
		p := list[i*per:]
		ok = per < 3 || p[2] > 0
		return float64(c.at.Min.X) + float64(p[0])*c.sx, float64(c.at.Min.Y) + float64(p[1])*c.sy, ok
	}
	n := len(list) / per
	if n == 17 {
		for _, e := range skeleton {
			x0, y0, a := at(e.a)
			x1, y1, b := at(e.b)
			if a && b {
				c.stroke(x0, y0, x1, y1, e.color)
			}
		}
	}
	for i := range n {
		if x, y, ok := at(i); ok {
			col := Color(i * 7)
			c.dot(x, y, 3, color.RGBA{255, 255, 255, 255})
			c.dot(x, y, 2, col)
		}
	}
}

// stroke draws a line of dots. The length is limited, since coordinates come from the dataset.
func (c canvas) stroke(x0, y0, x1, y1 float64, col color.RGBA) {
	n := int(math.Ceil(min(math.Hypot(x1-x0, y1-y0), 1e4)))
	for i := 0; i <= n; i++ {
		t := float64(i) / float64(max(n, 1))
		c.dot(x0+(x1-x0)*t, y0+(y1-y0)*t, 1, col)
	}
}

// dot fills a circle.
func (c canvas) dot(x, y, radius float64, col color.RGBA) {
	for py := int(y - radius); py <= int(y+radius); py++ {
		for px := int(x - radius); px <= int(x+radius); px++ {
			if math.Hypot(float64(px)+.5-x, float64(py)+.5-y) <= radius+.2 && image.Pt(px, py).In(c.at) {
				c.dst.SetRGBA(px, py, col)
			}
		}
	}
}
