package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Render prints the statistics for people, with at most so many classes of a field; 0 means all.
func (s *Stats) Render(w io.Writer, opts TextOptions) error {
	var b strings.Builder
	what := printable(s.Path)
	if s.Split != "" {
		what += ", split " + printable(s.Split)
	}
	source := "computed from every value"
	if s.From == "manifest" {
		source = "as the manifest has it"
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", what, cli.Counted(s.Records, "record"), source)
	for _, f := range s.Fields {
		f.render(&b, opts)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *FieldStats) render(b *strings.Builder, opts TextOptions) {
	shape := Field{Ragged: s.Ragged, Shape: s.Shape, Layout: s.Layout, Content: s.Content}
	fmt.Fprintf(b, "\n%s  %v %s\n", printable(s.Name), s.DType, shape.shapeText())
	if s.Agrees != nil && !*s.Agrees {
		b.WriteString("  The manifest has other figures: see inspect verify.\n")
	}
	if len(s.Labels) > 0 {
		s.renderLabels(b, opts)
	} else if len(s.Channels) > 0 {
		s.renderChannels(b)
	}
	if s.Lengths != nil {
		t := table{indent: 2, align: "lrrrr"}
		t.add("", "min", "max", "mean", "std")
		n := s.Lengths.Moments
		t.add(s.LengthName(), limit(n.Min), limit(n.Max), decimal(n.Mean), decimal(n.Std))
		b.WriteString(t.String())
		renderHistograms(b, []string{s.LengthName()}, []*Histogram{s.Lengths.Histogram})
	}
	s.renderClasses(b, opts)
}

func (s *FieldStats) renderChannels(b *strings.Builder) {
	t := table{indent: 2, align: "lrrrrrrr"}
	head := []string{"", "min", "max", "mean", "std"}
	if s.DType == tensor.Uint8 {
		head = append(head, "mean/255", "std/255")
	}
	bad := s.Moments.NonFinite > 0
	if bad {
		head = append(head, "not finite")
	}
	t.add(head...)
	for _, c := range s.Channels {
		row := []string{c.Name, limit(c.Min), limit(c.Max), decimal(c.Mean), decimal(c.Std)}
		if s.DType == tensor.Uint8 {
			row = append(row, decimal(c.Mean/255), decimal(c.Std/255))
		}
		if bad {
			row = append(row, cli.Count(c.NonFinite))
		}
		t.add(row...)
	}
	b.WriteString(t.String())
	renderHistograms(b, widen(s.Channels, func(c ChannelStats) string { return c.Name }), widen(s.Channels, func(c ChannelStats) *Histogram { return c.Histogram }))
}

// renderHistograms draws each in a line, over its own range.
func renderHistograms(b *strings.Builder, names []string, histograms []*Histogram) {
	t := table{indent: 2, align: "lrll"}
	for i, h := range histograms {
		if h != nil {
			t.add(names[i], limit(h.Low), sparkline(h.Counts), limit(h.High))
		}
	}
	b.WriteString(t.String())
}

// sparkline draws counts as shares of the largest, one in the height of a character. What is
// not nothing is never invisible.
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

func (s *FieldStats) renderLabels(b *strings.Builder, opts TextOptions) {
	labels, rest := firstOf(s.Labels, opts.Classes)
	most := int64(0)
	for _, l := range s.Labels {
		most = max(most, l.Records)
	}
	t := table{indent: 2, align: "rlr"}
	for _, l := range labels {
		t.add(fmt.Sprint(l.Value), shorten(printable(l.Name), 32), cli.Count(l.Records), bar(l.Records, most, barWidth))
	}
	b.WriteString(t.String())
	renderRest(b, rest)
}

func firstOf[T any](list []T, most int) (shown []T, rest int) {
	if most > 0 && len(list) > most {
		return list[:most], len(list) - most
	}
	return list, 0
}

func renderRest(b *strings.Builder, rest int) {
	if rest > 0 {
		fmt.Fprintf(b, "  ... and %s more\n", cli.Count(int64(rest)))
	}
}

// renderClasses prints mean and deviation of each channel by class.
func (s *FieldStats) renderClasses(b *strings.Builder, opts TextOptions) {
	if len(s.Classes) < 2 {
		return
	}
	classes, rest := firstOf(s.Classes, opts.Classes)
	t := table{indent: 2, align: "rlr" + strings.Repeat("r", len(s.Channels))}
	head := []string{"", "by " + printable(s.ClassField), "records"}
	for _, c := range s.Channels {
		head = append(head, c.Name+" mean (std)")
	}
	t.add(head...)
	for _, c := range classes {
		row := []string{fmt.Sprint(c.Value), shorten(printable(c.Name), 32), cli.Count(c.Records)}
		t.add(append(row, widen(c.Channels, func(m store.Moments) string { return decimal(m.Mean) + " (" + decimal(m.Std) + ")" })...)...)
	}
	b.WriteString(t.String())
	renderRest(b, rest)
}
