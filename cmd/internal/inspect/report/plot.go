package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"

	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/internal/chart"
)

// Plots are SVG elements inside the page, made here: plotting libraries bring their
// own colors and sizes of type, which neither follow the reader's dark mode nor a narrow
// screen, and text that a screen reader does not find.

// plotHigh is the height of a plot in its own units; on the page, style sheets decide.
const plotHigh = 100

// histogramPlot draws the channels of a field over one another.
func histogramPlot(f stats.FieldStats) markup {
	var names []string
	var list []*stats.Histogram
	for _, c := range f.Channels {
		if c.Histogram != nil {
			names, list = append(names, c.Name), append(list, c.Histogram)
		}
	}
	return plot("Histogram of "+f.Name, names, list)
}

// lengthsPlot draws how many rows records have.
func lengthsPlot(f stats.FieldStats) markup {
	if f.Lengths == nil || f.Lengths.Histogram == nil {
		return ""
	}
	return plot("Histogram of "+f.LengthName()+" of "+f.Name, []string{"all"}, []*stats.Histogram{f.Lengths.Histogram})
}

// plotSeries is the largest number of histograms that stay distinct in one plot.
const plotSeries = 4

// plot draws up to plotSeries histograms over one another, as one figure with a caption.
func plot(title string, names []string, list []*stats.Histogram) markup {
	if len(list) == 0 {
		return ""
	}
	list = list[:min(len(list), plotSeries)]
	low, high, densest := extent(list)
	largest := largestValue(list)
	var b strings.Builder
	fmt.Fprintf(&b, `<figure class="plot"><svg viewBox="0 0 100 %d" preserveAspectRatio="none" role="img" aria-label="%s, from %s to %s"><title>%s</title>`,
		plotHigh, escape(title), cli.Number(low), cli.Number(largest), escape(title))
	for i, h := range list {
		fmt.Fprintf(&b, `<path class="series %s" d="%s"/>`, seriesClass(names, i), outline(h, low, high, densest))
	}
	fmt.Fprintf(&b, `</svg><figcaption><span>%s</span><span>%s</span><span>%s</span></figcaption></figure>`,
		cli.Number(low), legend(names[:len(list)]), cli.Number(largest))
	return markup(b.String())
}

// largestValue returns the largest value that the histograms have room for. For integers it is one
// less than the end of the last bin.
func largestValue(list []*stats.Histogram) float64 {
	most := math.Inf(-1)
	for _, h := range list {
		most = max(most, h.Largest())
	}
	return most
}

// extent returns the limits of all histograms, and the largest count per unit of width: histograms
// of different bin widths are comparable by density only.
func extent(list []*stats.Histogram) (low, high, densest float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, h := range list {
		low, high = min(low, h.Low), max(high, h.High)
		densest = max(densest, float64(slices.Max(h.Counts))/h.Width())
	}
	return low, high, densest
}

// outline returns the SVG path around the columns of a histogram, in a box of 100 by plotHigh. The
// columns leave 4 % free at the top. Halves are subtracted, since high-low may overflow.
func outline(h *stats.Histogram, low, high, densest float64) string {
	at := func(v float64) float64 {
		if high <= low {
			return 0
		}
		return 100 * (v/2 - low/2) / (high/2 - low/2)
	}
	right := func(i int) float64 {
		if high <= low {
			return 100
		}
		return at(h.Low + float64(float64(i+1)*h.Width()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%.4g %d", at(h.Low), plotHigh)
	for i, n := range h.Counts {
		fmt.Fprintf(&b, "V%.4gH%.4g", plotHigh-0.96*plotHigh*(float64(n)/h.Width()/densest), right(i))
	}
	fmt.Fprintf(&b, "V%dZ", plotHigh)
	return b.String()
}

// seriesClass returns the name of a color in the style sheet: channels are drawn in their own
// colors.
func seriesClass(names []string, i int) string {
	if slices.Contains([]string{"red", "green", "blue"}, names[i]) {
		return names[i]
	}
	return fmt.Sprintf("s%d", i)
}

// legend returns the names of the histograms with their colors, nothing for a single one.
func legend(names []string) string {
	if len(names) < 2 {
		return ""
	}
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, `<i class="key %s"></i>%s `, seriesClass(names, i), escape(name))
	}
	return b.String()
}

// bar returns a bar whose length is n as a share of whole.
func bar(n, whole int64) markup {
	return markup(chart.Bar(float64(n), float64(max(1, whole)), `class="bar" aria-hidden="true"`))
}
