package loadbench

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/units"
)

// plotFormats are the endings of names of plots.
var plotFormats = []string{".svg", ".png"}

func number(x float64) string {
	if x < 1 {
		return fmt.Sprint(x)
	}
	return units.Count(int64(x))
}

// svg draws one figure.
func (f *figure) svg() (string, error) {
	c := newSVG(figureWidth, f.height())
	f.draw(draw.New(c))
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.String(), err
}

// WritePlot draws the main figure of each table, one below the other, to a file whose ending
// names the format.
func (r *Report) WritePlot(path string) error {
	var figures []*figure
	height := vg.Length(0)
	for i := range r.Tables {
		f, err := r.Tables[i].main()
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		if f != nil {
			f.setTitle(r.Tables[i].Title)
			figures = append(figures, f)
			height += f.height()
		}
	}
	if len(figures) == 0 {
		return fmt.Errorf("plot: nothing was measured that %s could show", path)
	}
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if strings.EqualFold(filepath.Ext(path), ".png") {
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(figureWidth, height), vgimg.UseDPI(200),
			vgimg.UseBackgroundColor(color.White))}
	} else {
		c = newSVG(figureWidth, height)
	}
	whole := draw.New(c)
	for _, f := range figures {
		height -= f.height()
		f.draw(draw.Crop(whole, 0, 0, height, height+f.height()-whole.Size().Y))
	}
	return cli.WriteFile(path, func(w io.Writer) error { _, err := c.WriteTo(w); return err })
}
