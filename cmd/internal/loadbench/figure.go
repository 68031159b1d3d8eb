package loadbench

import (
	"image/color"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Measures of a figure.
const (
	figureWidth  = 4.8 * vg.Inch
	figureHeight = 2.6 * vg.Inch
	legendLine   = 13 // points
	border       = 8  // points around everything
)

// colors are distinct for people with color blindness, too (Okabe and Ito), on white and on
// black.
var colors = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0x99, 0x99, 0x99, 0xff},
	color.RGBA{0x8c, 0x56, 0x4b, 0xff},
}

func colorOf(i int) color.Color { return colors[i%len(colors)] }

// figure is a plot, and the legend below it.
type figure struct {
	title  string
	plot   *plot.Plot
	legend plot.Legend
	lines  int // of the legend
}

func newFigure(title, x string) *figure {
	f := &figure{title: title, plot: plot.New(), legend: plot.NewLegend()}
	p := f.plot
	p.X.Label.Text = x
	f.setTitle(title)
	p.BackgroundColor = color.Transparent
	p.Add(plotter.NewGrid()) // first, so that it is behind everything
	f.legend.Top, f.legend.Left, f.legend.Padding = true, true, vg.Points(2)
	p.Title.Padding = vg.Points(4)
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label,
		&p.Y.Tick.Label, &f.legend.TextStyle} {
		s.Font.Variant = "Sans"
	}
	return f
}

// name adds a line to the legend.
func (f *figure) name(name string, t plot.Thumbnailer) {
	f.legend.Add(name, t)
	f.lines++
}

func (f *figure) below() vg.Length { return vg.Points(float64(legendLine * f.lines)) }

func (f *figure) height() vg.Length { return figureHeight + f.below() }

// draw draws the figure, the legend below the plot.
func (f *figure) draw(c draw.Canvas) {
	edge := vg.Points(border)
	c = draw.Crop(c, edge, -edge, edge, -edge)
	f.plot.Draw(draw.Crop(c, 0, 0, f.below(), 0))
	f.legend.Draw(draw.Crop(c, vg.Points(40), 0, 0, f.below()-c.Size().Y))
}

// setTitle breaks a title into lines that fit.
func (f *figure) setTitle(title string) {
	const widest = 52
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(title) {
		if line != "" && len(line)+len(word) >= widest {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	f.plot.Title.Text = strings.Join(append(lines, line), "\n")
}

// main returns the figure that says most about a table, nil if no row ran.
func (t *Table) main() (*figure, error) {
	switch {
	case t.best(1) == nil:
		return nil, nil
	case t.vary != "":
		return t.curve()
	case t.guide:
		return t.overTime()
	}
	return t.totals()
}

// figures returns all plots of a table.
func (t *Table) figures() (all []*figure, err error) {
	if t.best(1) == nil {
		return nil, nil
	}
	makes := []func() (*figure, error){t.totals, t.overTime, t.percentiles, t.busy}
	if t.vary != "" {
		makes[0] = t.curve
	}
	for _, make := range makes {
		f, err := make()
		if err != nil {
			return nil, err
		}
		if f != nil {
			all = append(all, f)
		}
	}
	return all, nil
}

// ran returns the rows that were measured.
func (t *Table) ran() (rows []*Result) {
	for i := range t.Rows {
		if t.Rows[i].Ran() && t.Rows[i].Batches > 0 {
			rows = append(rows, &t.Rows[i])
		}
	}
	return rows
}

// totals shows how long each row took, next to the published times.
func (t *Table) totals() (*figure, error) {
	f := newFigure("time of the whole run", "")
	rows := t.ran()
	slices.Reverse(rows)
	var ours, theirs plotter.XYs
	var names []string
	for i, r := range rows {
		names = append(names, r.Name)
		ours = append(ours, plotter.XY{X: logTime(r.ofAsked(r.Total)), Y: float64(i)})
		if r.Published != nil && r.Published.Seconds > 0 {
			theirs = append(theirs, plotter.XY{X: r.Published.Seconds, Y: float64(i)})
		}
	}
	if err := f.points("measured here", ours, colorOf(0), draw.CircleGlyph{}); err != nil {
		return nil, err
	}
	if len(theirs) > 0 {
		if err := f.points("published, on another machine", theirs, colorOf(3), draw.BoxGlyph{}); err != nil {
			return nil, err
		}
	}
	f.plot.NominalY(names...)
	f.plot.X.Scale, f.plot.X.Tick.Marker = plot.LogScale{}, decades{}
	roomOnLog(&f.plot.X)
	return f, nil
}

func (f *figure) points(name string, xys plotter.XYs, c color.Color, shape draw.GlyphDrawer) error {
	s, err := plotter.NewScatter(xys)
	if err != nil {
		return err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(4), Shape: shape}
	f.plot.Add(s)
	f.name(name, s)
	return nil
}

func (f *figure) line(name string, xys plotter.XYs, c color.Color) error {
	l, err := plotter.NewLine(xys)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(1.5)
	f.plot.Add(l)
	f.name(name, l)
	return nil
}

// overTime shows what the consumer waited for each batch.
func (t *Table) overTime() (*figure, error) {
	f := newFigure("wait per batch", "batch")
	for i, r := range t.ran() {
		var xys plotter.XYs
		for at, wait := range r.Waits {
			xys = append(xys, plotter.XY{X: float64(at), Y: logTime(wait)})
		}
		if err := f.line(r.Name, xys, colorOf(i)); err != nil {
			return nil, err
		}
	}
	f.plot.X.Tick.Marker = wholes{}
	f.timesUp()
	return f, nil
}

// percentiles shows how the waits are distributed.
func (t *Table) percentiles() (*figure, error) {
	f := newFigure("percentiles of the waits", "percent of the batches that waited no longer")
	for i, r := range t.ran() {
		var xys plotter.XYs
		sorted := slices.Sorted(slices.Values(r.Waits))
		for at, wait := range sorted {
			xys = append(xys, plotter.XY{X: 100 * float64(at+1) / float64(len(sorted)), Y: logTime(wait)})
		}
		if err := f.line(r.Name, xys, colorOf(i)); err != nil {
			return nil, err
		}
	}
	f.timesUp()
	return f, nil
}

// timesUp makes the Y axis one of times, on a logarithmic scale.
func (f *figure) timesUp() {
	f.plot.Y.Scale, f.plot.Y.Tick.Marker = plot.LogScale{}, decades{}
	roomOnLog(&f.plot.Y)
}

// busy shows what the time of those who fill batches went into, nil if nobody does.
func (t *Table) busy() (*figure, error) {
	f := newFigure("how workers spend their time, in percent", "")
	rows := t.ran()
	slices.Reverse(rows)
	var names []string
	parts := make([]plotter.Values, 4)
	if !slices.ContainsFunc(rows, func(r *Result) bool { return r.Busy != Busy{} }) {
		return nil, nil
	}
	for _, r := range rows {
		names = append(names, r.Name)
		times := []time.Duration{r.Busy.Read, r.Busy.Transform, r.Busy.Collate, r.Busy.Idle}
		whole := times[0] + times[1] + times[2] + times[3]
		for i, d := range times {
			parts[i] = append(parts[i], 100*float64(d)/float64(max(1, whole)))
		}
	}
	var below *plotter.BarChart
	for i, name := range []string{"reading and copying", "work on single records", "work on batches",
		"idle: batches are ready"} {
		bars, err := plotter.NewBarChart(parts[i], vg.Points(11))
		if err != nil {
			return nil, err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, colorOf(i), 0
		if i == 3 {
			bars.Color = colorOf(6)
		}
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		f.plot.Add(bars)
		f.name(name, bars)
	}
	f.plot.NominalY(names...)
	f.plot.X.Min, f.plot.X.Max = 0, 100
	return f, nil
}

// curve shows the rate of each row of a sweep, and what the machine could reach.
func (t *Table) curve() (*figure, error) {
	f := newFigure("records a second by "+t.vary, "")
	var ours, limit plotter.XYs
	var names []string
	for i, r := range t.ran() {
		names = append(names, r.Name)
		ours = append(ours, plotter.XY{X: float64(i), Y: r.Rate()})
		limit = append(limit, plotter.XY{X: float64(i), Y: r.Rate() / max(1e-9, r.Limit)})
	}
	if err := f.line("measured", ours, colorOf(0)); err != nil {
		return nil, err
	}
	if err := f.line("this machine's limit", limit, colorOf(6)); err != nil {
		return nil, err
	}
	f.plot.NominalX(names...)
	f.plot.Y.Scale, f.plot.Y.Tick.Marker = plot.LogScale{}, plain{}
	roomOnLog(&f.plot.Y)
	return f, nil
}

// logTime returns seconds that have a logarithm.
func logTime(d time.Duration) float64 { return max(50e-9, d.Seconds()) }

// roomOnLog widens an axis to whole decades.
func roomOnLog(a *plot.Axis) {
	a.Min = math.Pow(10, math.Floor(math.Log10(a.Min)))
	a.Max = math.Pow(10, math.Ceil(math.Log10(max(a.Max, a.Min*10))))
}

// wholes marks whole numbers.
type wholes struct{}

// Ticks implements plot.Ticker.
func (wholes) Ticks(least, most float64) (ticks []plot.Tick) {
	for _, t := range (plot.DefaultTicks{}).Ticks(least, most) {
		if t.Value == math.Trunc(t.Value) {
			if t.Label != "" {
				t.Label = number(t.Value)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// decades marks powers of ten of a second.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(least, most float64) []plot.Tick {
	return powers(least, most, func(x float64) string {
		return strings.ReplaceAll(strings.ReplaceAll(short(time.Duration(math.Round(x*1e9))), ".00", ""), ".0", "")
	})
}

// plain marks powers of ten.
type plain struct{}

// Ticks implements plot.Ticker.
func (plain) Ticks(least, most float64) []plot.Tick {
	return powers(least, most, number)
}

func powers(least, most float64, label func(float64) string) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(least)); e <= math.Ceil(math.Log10(most)); e++ {
		x := math.Pow(10, e)
		ticks = append(ticks, plot.Tick{Value: x, Label: label(x)})
		for k := 2.0; k < 10; k++ {
			ticks = append(ticks, plot.Tick{Value: k * x})
		}
	}
	return ticks
}
