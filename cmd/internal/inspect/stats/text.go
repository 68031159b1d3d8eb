package stats

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Render prints the statistics, with at most `classes` classes of a field, 0 meaning all. Tables
// are divided to fit into width characters; 0 means any width.
func (s *Stats) Render(w io.Writer, classes, width int) error {
	var b strings.Builder
	what := shell.Line(s.Path)
	if s.Split != "" {
		what += ", split " + shell.Line(s.Split)
	}
	fmt.Fprintf(&b, "%s: %s, computed from every value\n", what, units.Counted(s.Records, "record"))
	for _, f := range s.Fields {
		f.render(&b, s.Path, classes, width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// render prints the statistics of a field.
func (s *FieldStats) render(b *strings.Builder, path string, classes, width int) {
	fmt.Fprintf(b, "\n%s  %v %s\n", shell.Line(s.Name), s.DType, dataset.ShapeText(s.spec()))
	if s.Agrees != nil && !*s.Agrees {
		b.WriteString("  The manifest has other statistics: see " +
			shell.On("inspect verify", path) + ".\n")
	}
	if len(s.Labels) > 0 {
		s.renderLabels(b, classes)
	} else if len(s.Channels) > 0 {
		s.renderChannels(b, width)
	}
	if s.Lengths != nil {
		t := cli.Table{Indent: 2, Align: "lrrrr"}
		t.Add("", "min", "max", "mean", "std")
		n := s.Lengths.Moments
		t.Add(s.LengthName(), cli.Number(n.Min), cli.Number(n.Max), cli.Decimal(n.Mean), cli.Decimal(n.Std))
		b.WriteString(t.String())
		renderHistograms(b, []string{s.LengthName()}, []*Histogram{s.Lengths.Histogram}, width)
	}
	s.Boxes.render(b)
	s.renderClasses(b, classes, width)
}

// renderChannels prints a line and a histogram for each channel. Bytes are also given as x/255, the
// form in which torchvision normalizes.
func (s *FieldStats) renderChannels(b *strings.Builder, width int) {
	t := cli.Table{Indent: 2, Align: "lrrrrrrr"}
	head := []string{"", "min", "max", "mean", "std"}
	if s.DType == tensor.Uint8 {
		head = append(head, "mean/255", "std/255")
	}
	bad := s.Moments.NonFinite > 0
	if bad {
		head = append(head, "not finite")
	}
	t.Add(head...)
	for _, c := range s.Channels {
		row := []string{c.Name, cli.Number(c.Min), cli.Number(c.Max), cli.Decimal(c.Mean), cli.Decimal(c.Std)}
		if s.DType == tensor.Uint8 {
			row = append(row, cli.Decimal(c.Mean/255), cli.Decimal(c.Std/255))
		}
		if bad {
			row = append(row, units.Count(c.NonFinite))
		}
		t.Add(row...)
	}
	b.WriteString(t.String())
	renderHistograms(b, dataset.Map(s.Channels, func(c ChannelStats) string {
		return c.Name
	}), dataset.Map(s.Channels, func(c ChannelStats) *Histogram { return c.Histogram }), width)
}

// renderHistograms prints each histogram in one line, over its own range. If a line is wider than
// width, neighboring bins are joined.
func renderHistograms(b *strings.Builder, names []string, histograms []*Histogram, width int) {
	for bins := histogramBins; ; bins /= 2 {
		t := cli.Table{Indent: 2, Align: "lrll"}
		for i, h := range histograms {
			if h != nil {
				t.Add(names[i], cli.Number(h.Low), sparkline(joined(h.Counts, bins)), cli.Number(h.Largest()))
			}
		}
		if text := t.String(); bins == 1 || width <= 0 || !longer(text, width) {
			b.WriteString(text)
			return
		}
	}
}

// joined adds up neighbors until there are at most `bins` counts.
func joined(counts []int64, bins int) []int64 {
	for len(counts) > bins {
		half := make([]int64, (len(counts)+1)/2)
		for i, n := range counts {
			half[i/2] += n
		}
		counts = half
	}
	return counts
}

// longer reports whether a line of text has more than width characters.
func longer(text string, width int) bool {
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
			return true
		}
	}
	return false
}

// sparkline draws each count as a block character whose height is its share of the largest. Counts
// above 0 have at least one eighth.
func sparkline(counts []int64) string {
	largest := max(1, slices.Max(counts))
	var b strings.Builder
	for _, n := range counts {
		switch eighths := int(float64(n)/float64(largest)*8 + 0.5); {
		case n == 0:
			b.WriteByte(' ')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[max(1, eighths)-1])
		}
	}
	return "|" + b.String() + "|"
}

// renderLabels prints the number of records of each label.
func (s *FieldStats) renderLabels(b *strings.Builder, classes int) {
	labels, rest := firstOf(s.Labels, classes)
	most := int64(0)
	for _, l := range s.Labels {
		most = max(most, l.Records)
	}
	t := cli.Table{Indent: 2, Align: "rlr"}
	for _, l := range labels {
		t.Add(fmt.Sprint(l.Value), cli.Shorten(l.Name, 32), units.Count(l.Records),
			cli.Bar(l.Records, most, cli.BarWidth))
	}
	b.WriteString(t.String())
	renderRest(b, rest)
}

// firstOf returns the first `most` elements of a list, all elements for 0, and the number of
// elements left out.
func firstOf[T any](list []T, most int) (shown []T, rest int) {
	if most > 0 && len(list) > most {
		return list[:most], len(list) - most
	}
	return list, 0
}

// renderRest says how many rows were left out.
func renderRest(b *strings.Builder, rest int) {
	if rest > 0 {
		fmt.Fprintf(b, "  ... and %s more\n", units.Count(int64(rest)))
	}
}

// renderClasses prints mean and standard deviation of each channel by class.
func (s *FieldStats) renderClasses(b *strings.Builder, classes, width int) {
	if len(s.Classes) < 2 {
		return
	}
	shown, rest := firstOf(s.Classes, classes)
	t := cli.Table{Indent: 2, Align: "lr" + strings.Repeat("r", len(s.Channels))}
	head := []string{"by " + shell.Line(s.ClassField), "records"}
	for _, c := range s.Channels {
		head = append(head, c.Name+" mean (std)")
	}
	t.Add(head...)
	for _, c := range shown {
		row := []string{strings.TrimSpace(fmt.Sprintf("%d %s", c.Value, cli.Shorten(c.Name, 32))),
			units.Count(c.Records)}
		t.Add(append(row, dataset.Map(c.Channels, func(m store.Moments) string {
			return cli.Decimal(m.Mean) + " (" + cli.Decimal(m.Std) + ")"
		})...)...)
	}
	for _, part := range t.Parts(width) {
		b.WriteString(part.String())
	}
	renderRest(b, rest)
}
