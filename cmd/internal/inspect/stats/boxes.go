package stats

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
)

// BoxStats is the statistics of the boxes of a field.
type BoxStats struct {
	*dataset.BoxSurvey
	Width  store.Moments `json:"width"` // in pixels
	Height store.Moments `json:"height"`
	Aspect store.Moments `json:"aspect"` // width by height
	Share  store.Moments `json:"share"`  // of the area of the image
}

// newBoxStats computes the statistics of a survey.
func newBoxStats(s *dataset.BoxSurvey) *BoxStats {
	of := func(list []float64) store.Moments { return dataset.Moments(moments.Of(list)) }
	return &BoxStats{s, of(s.Widths), of(s.Heights), of(s.Aspects), of(s.Shares)}
}

// render prints the statistics, and nothing if there are no boxes.
func (s *BoxStats) render(b *strings.Builder) {
	if s == nil || s.Count == 0 {
		return
	}
	t := cli.Table{Indent: 2, Align: "lrrrr"}
	t.Add("of a box", "min", "max", "mean", "std")
	type figures struct {
		name string
		m    store.Moments
	}
	list := []figures{{"width", s.Width}, {"height", s.Height}, {"width/height", s.Aspect}}
	if len(s.Shares) > 0 {
		list = append(list, figures{"part of the image", s.Share})
	}
	for _, row := range list {
		t.Add(row.name, cli.Decimal(row.m.Min), cli.Decimal(row.m.Max), cli.Decimal(row.m.Mean), cli.Decimal(row.m.Std))
	}
	b.WriteString(t.String())
	fmt.Fprintf(b, "  %s rows: %s reach out of their image, %s have no area, %s are not boxes\n",
		units.Count(s.Count), units.Count(s.Outside), units.Count(s.Empty), units.Count(s.Inverted))
	if s.Unknown > 0 {
		fmt.Fprintf(b, "  The size of the image is not known in %s.\n", units.Counted(s.Unknown, "record"))
	}
}
