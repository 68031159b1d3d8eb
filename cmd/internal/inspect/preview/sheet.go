package preview

import (
	"fmt"
	"image"
	"image/color"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"

	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/internal/sys/shell"
)

// Measures of a contact sheet, in pixels.
const (
	margin     = 36      // around everything
	titleLine  = 30      // from the margin to the title's baseline
	textLine   = 24      // from there to the baseline of the line below it
	headGap    = 22      // below the head
	columnGap  = 16      //
	rowGap     = 18      //
	labelLine  = 19      // from a picture to the baseline of its label
	numberLine = 15      // from there to the baseline of its number
	belowLine  = 5       // below that
	pixelated  = 64      // a picture up to this size is enlarged, pixel by pixel
	enlarged   = 128     // to about this size
	largest    = 160     // the longer side of a picture at most; larger pictures are reduced
	narrowest  = 88      // of a cell, so that its label can be read
	mostPixels = 1 << 26 // of a sheet: 256 MiB of memory

	legendGap   = 4  // below the second line of the head
	legendLine  = 22 // from a line of the legend to the next
	legendLines = 6  // at most
	swatchSize  = 12 // of the color of a class
)

// The colors of the sheet.
var (
	paper = color.RGBA{0xfa, 0xfa, 0xf8, 0xff}
	ink   = color.RGBA{0x1f, 0x23, 0x28, 0xff}
	faint = color.RGBA{0x7d, 0x82, 0x88, 0xff}
	frame = color.RGBA{0xd9, 0xda, 0xd6, 0xff}
)

// cell is the text below a picture: label is the class, caption the record.
type cell struct {
	label, caption string
}

// drawing is a contact sheet that is being drawn.
type drawing struct {
	canvas  *image.RGBA
	fonts   fonts
	columns int
	head    int         // height above the first row
	thumb   image.Point // size of a picture's frame
	cell    image.Point // distance from a cell to the next, gaps included
	cells   []cell
}

// newDrawing returns a sheet with all its text, on which place puts the pictures. The width follows
// from the columns and from the title; the legend is laid out in that width, and then the height is
// known.
func newDrawing(title, subtitle string, legend []render.Entry, columns int, thumb image.Point, cells []cell) (
	*drawing, error) {
	f, err := newFonts()
	if err != nil {
		return nil, err
	}
	d := &drawing{fonts: f, columns: columns, thumb: thumb, cells: cells}
	d.head = margin + titleLine + textLine + headGap
	d.cell.X = max(d.thumb.X, narrowest) + columnGap
	d.cell.Y = d.thumb.Y + numberLine + belowLine + rowGap
	if d.labeled() {
		d.cell.Y += labelLine
	}
	rows := (len(cells) + columns - 1) / columns
	w := max(2*margin+columns*d.cell.X-columnGap, d.textWidth(title, subtitle)+2*margin)
	swatches, lines := d.swatches(legend, w-2*margin)
	d.head += lines * legendLine
	h := d.head + rows*d.cell.Y - rowGap + margin
	if w > mostPixels/h {
		return nil, fmt.Errorf("a sheet of %d x %d pixels is too large; ask for fewer samples or other columns", w, h)
	}
	d.canvas = image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(d.canvas, d.canvas.Rect, image.NewUniform(paper), image.Point{}, draw.Src)
	d.text(f.title, ink, margin, margin+titleLine-6, fit(f.title, title, w-2*margin))
	d.text(f.text, faint, margin, margin+titleLine+textLine-6, fit(f.text, subtitle, w-2*margin))
	for _, s := range swatches {
		at := image.Pt(margin+s.at.X, margin+titleLine+textLine+legendGap+s.at.Y*legendLine)
		draw.Draw(d.canvas, image.Rectangle{at, at.Add(image.Pt(swatchSize, swatchSize))},
			image.NewUniform(render.Color(s.Color)), image.Point{}, draw.Src)
		d.text(f.text, ink, at.X+swatchSize+6, at.Y+swatchSize-1, s.Name)
	}
	for i := range cells {
		d.caption(i)
	}
	return d, nil
}

// swatch is an entry of the legend. at.X is the distance from the left in pixels, at.Y the line.
type swatch struct {
	render.Entry
	at image.Point
}

// swatches lays the legend out in lines of a width in pixels. Entries beyond legendLines are left
// out.
func (d *drawing) swatches(legend []render.Entry, width int) (list []swatch, lines int) {
	const between = 20
	x := 0
	for _, e := range legend {
		e.Name = fit(d.fonts.text, shell.Line(e.Name), min(width, 200))
		w := swatchSize + 6 + font.MeasureString(d.fonts.text, e.Name).Ceil()
		if lines == 0 || x+w > width {
			if lines == legendLines {
				break
			}
			x, lines = 0, lines+1
		}
		list = append(list, swatch{e, image.Pt(x, lines-1)})
		x += w + between
	}
	return list, lines
}

// textWidth returns the width that the title needs, at most 560 pixels: a sheet of two pictures
// does not become as wide as a sheet of eight because of its title.
func (d *drawing) textWidth(title, subtitle string) int {
	const most = 560
	w := max(font.MeasureString(d.fonts.title, title).Ceil(), font.MeasureString(d.fonts.text, subtitle).Ceil())
	return min(w, most)
}

// labeled reports whether the pictures have labels.
func (d *drawing) labeled() bool { return len(d.cells) > 0 && d.cells[0].label != "" }

// thumbSize returns the size at which a picture of w by h pixels is shown. Small pictures are
// enlarged by a whole factor, so that every pixel is a square of the same size.
func thumbSize(w, h int) image.Point {
	long := max(w, h)
	switch {
	case long <= pixelated:
		k := max(1, enlarged/long)
		return image.Pt(w*k, h*k)
	case long <= largest:
		return image.Pt(w, h)
	}
	return image.Pt(max(1, (w*largest+long/2)/long), max(1, (h*largest+long/2)/long))
}

// corner returns the top left corner of cell i.
func (d *drawing) corner(i int) image.Point {
	return image.Pt(margin+i%d.columns*d.cell.X, d.head+i/d.columns*d.cell.Y)
}

// place draws the picture of cell i. Pictures with marks stand at the bottom of the cell, next to
// their caption; other pictures whose aspect is not the cell's are fitted into it and centered.
func (d *drawing) place(i int, picture image.Image) {
	at := image.Rectangle{Max: d.thumb}.Add(d.corner(i))
	if w, h := picture.Bounds().Dx(), picture.Bounds().Dy(); w <= d.thumb.X && h <= d.thumb.Y && max(w, h) == markedSize {
		left := image.Pt((d.thumb.X-w)/2, d.thumb.Y-h) // at the bottom, next to its caption
		at = image.Rectangle{Max: image.Pt(w, h)}.Add(at.Min.Add(left))
	} else if w*d.thumb.Y != h*d.thumb.X && thumbSize(w, h) != d.thumb {
		size := image.Pt(d.thumb.X, max(1, h*d.thumb.X/w))
		if size.Y > d.thumb.Y {
			size = image.Pt(max(1, w*d.thumb.Y/h), d.thumb.Y)
		}
		at = image.Rectangle{Max: size}.Add(at.Min.Add(d.thumb.Sub(size).Div(2)))
	}
	draw.Draw(d.canvas, at.Inset(-1), image.NewUniform(frame), image.Point{}, draw.Src)
	scaler := draw.Scaler(draw.CatmullRom)
	if at.Dx() >= picture.Bounds().Dx() {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(d.canvas, at, picture, picture.Bounds(), draw.Src, nil)
}

// caption writes the text below the picture of cell i.
func (d *drawing) caption(i int) {
	at := d.corner(i)
	width, y := d.cell.X-columnGap, at.Y+d.thumb.Y
	if d.labeled() {
		y += labelLine
		d.text(d.fonts.label, ink, at.X, y, fit(d.fonts.label, d.cells[i].label, width))
	}
	d.text(d.fonts.number, faint, at.X, y+numberLine, fit(d.fonts.number, d.cells[i].caption, width))
}

// text writes s with its left end at x and its baseline at y.
func (d *drawing) text(face font.Face, c color.Color, x, y int, s string) {
	drawer := font.Drawer{Dst: d.canvas, Src: image.NewUniform(c), Face: face, Dot: fixed.P(x, y)}
	drawer.DrawString(s)
}
