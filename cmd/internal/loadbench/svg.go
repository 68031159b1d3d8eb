package loadbench

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgCanvas writes SVG whose labels have the widths that the plot was laid out with. Without these, a browser
// that draws them in a wider font clips titles and runs names into the plot.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length // of all labels, in the order of the file
}

func newSVG(w, h vg.Length) *svgCanvas { return &svgCanvas{Canvas: vgsvg.New(w, h)} }

// FillString draws a text.
func (c *svgCanvas) FillString(face font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, face.Width(text))
	c.Canvas.FillString(face, at, text)
}

// WriteTo writes the file.
func (c *svgCanvas) WriteTo(w io.Writer) (int64, error) {
	var plain bytes.Buffer
	if _, err := c.Canvas.WriteTo(&plain); err != nil {
		return 0, err
	}
	const begin = "<text "
	parts := bytes.Split(plain.Bytes(), []byte(begin)) // a "<" in a text is escaped
	out := parts[0]
	for i, part := range parts[1:] {
		out = fmt.Appendf(out, `%stextLength="%.2f" lengthAdjust="spacingAndGlyphs" %s`, begin, c.widths[i].Points(), part)
	}
	n, err := w.Write(out)
	return int64(n), err
}
